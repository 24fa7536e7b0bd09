# bridge: layer 2, layer 3, gateways, and the result in every version.

load bridge

# ---- layer 2 ----------------------------------------------------------------------------------

@test "layer 2: a bridge, a port, an interface that is up, and no address" {
	add c1 "$(l2)"
	is '.interfaces | length' 3
	is '[.interfaces[].name] | del(.[1])' '["br0","eth0"]'
	is '[.interfaces[].sandbox]' '[null,null,"/run/netns/c1"]'
	is '.ips // []' '[]'
	is '.routes // []' '[]'
	is '.dns // {}' '{}'
	[[ $port =~ ^veth[0-9a-f]{8}$ ]]
	link br0 .linkinfo.info_kind bridge
	link br0 '.flags | contains(["UP","LOWER_UP"])' true
	link "$port" .master br0
	link "$port" .linkinfo.info_kind veth
	link "$port" .operstate UP
	link_in c1 eth0 .linkinfo.info_kind veth
	link_in c1 eth0 '.flags | contains(["UP","LOWER_UP"])' true
	same "MAC of the bridge" "$(mac_of br0)" "$(jq -r '.interfaces[0].mac' <<<"$output")"
	same "MAC of the port" "$(mac_of "$port")" "$(jq -r '.interfaces[1].mac' <<<"$output")"
	link_in c1 eth0 .address "$(jq '.interfaces[2].mac' <<<"$output")"
	same "addresses" '' "$(addrs c1 eth0)$(addrs host br0)"
	host test ! -e /var/lib/cni/networks/net1
	del c1 "$(l2)"
	nothing_left br0
	inside c1 sh -c '! ip link show eth0'
}

@test "layer 2: frames pass between containers" {
	add c1 "$(l2)"
	add c2 "$(l2)"
	inside c1 ip addr add 10.9.0.1/24 dev eth0
	inside c2 ip addr add 10.9.0.2/24 dev eth0
	serve c2 80
	same answer "c2 10.9.0.1" "$(ask c1 tcp 10.9.0.2 80)"
}

@test "layer 2: an empty IPAM type and an empty ipam are no IPAM" {
	add c1 "$(l2 '{"ipam":{}}')"
	add c2 "$(l2 '{"ipam":{"type":""}}')"
	is '.ips // []' '[]'
	del c1 "$(l2 '{"ipam":{}}')"
	del c2 "$(l2 '{"ipam":{"type":""}}')"
	nothing_left br0
}

@test "the bridge is cni0 unless the config says otherwise" {
	netns c1
	ok ADD bridge c1 <<<'{"cniVersion":"1.0.0","name":"net1","type":"bridge"}'
	is '.interfaces[0].name' cni0
	link cni0 .linkinfo.info_kind bridge
}

@test "keys are matched without regard to case, unknown ones ignored, null is the default" {
	netns c1
	ok ADD bridge c1 <<<'{"cniVersion":"1.0.0","name":"net1","type":"bridge","BRIDGE":"br7","MTU":1400,
		"hairpinmode":null,"vlan":null,"whatever":[1],"ipam":null}'
	is '.interfaces[0].name' br7
	link br7 .mtu 1400
}

@test "a second interface of the same container" {
	add c1 "$(l3)"
	add c1 "$(l3)" net1
	is '.ips[0].address' 10.1.0.3/24
	is '.interfaces[2].name' net1
	same ports 2 "$(ports)"
	del c1 "$(l3)"
	inside c1 ip link show net1
	inside c1 sh -c '! ip link show eth0'
	same leases 10.1.0.3 "$(leases)"
	del c1 "$(l3)" net1
	nothing_left br0
}

# ---- layer 3 ----------------------------------------------------------------------------------

@test "layer 3: the address from IPAM, no gateway on the bridge, no forwarding" {
	add c1 "$(l3)"
	is .ips '[{"address":"10.1.0.2/24","gateway":"10.1.0.1","interface":2}]'
	is '.routes // []' '[]'
	same "addresses" 10.1.0.2/24 "$(addrs c1 eth0)"
	inside_is c1 '.[0].addr_info[0] | [.broadcast, .scope]' '["10.1.0.255","global"]' \
		ip -j -4 addr show eth0
	inside_is c1 '[.[].dst]' '["10.1.0.0/24"]' ip -j -4 route
	same "addresses of the bridge" '' "$(addrs host br0)"
	same forwarding 0 "$(sysctl host ipv4/ip_forward)"
	add c2 "$(l3)"
	serve c2 80
	same answer "c2 10.1.0.2" "$(ask c1 tcp 10.1.0.3 80)"
	same "arp_notify" 1 "$(sysctl c1 ipv4/conf/eth0/arp_notify)"
	same "accept_dad" 0 "$(sysctl c1 ipv6/conf/eth0/accept_dad)"
	for l in br0 "$port"; do
		same "accept_ra of $l" 0 "$(sysctl host "ipv6/conf/$l/accept_ra")"
	done
	del c1 "$(l3)"
	del c2 "$(l3)"
	nothing_left br0
}

@test "IPAM sees our stdin and environment as they came" {
	local c
	c=$(fake '{"ips":[{"address":"10.1.0.9/24"}]}' '{"runtimeConfig":{"ips":["10.1.0.9"]},"x":[1,2.5]}')
	netns c1
	CNI_ARGS='IgnoreUnknown=1;K8S=x' ok ADD bridge c1 net3 <<<"$c"
	jq_is . "$c" <"$T/stdin.ADD"
	CNI_ARGS='IgnoreUnknown=1;K8S=x' ok DEL bridge c1 net3 <<<"$c"
	jq_is . "$c" <"$T/stdin.DEL"
	same calls $'ADD c1 net3\nDEL c1 net3' "$(<"$T/fake.log")"
}

@test "interfaces that IPAM names are dropped, indexes set to the container's" {
	local c
	c=$(fake '{"interfaces":[{"name":"x0"}],"ips":[{"address":"10.1.0.9/24","interface":0}]}')
	add c1 "$c"
	is '[.interfaces[].name] | del(.[1])' '["br0","eth0"]'
	is '.ips[0].interface' 2
}

@test "several addresses, IPv4 and IPv6" {
	add c1 "$(fake '{"ips":[{"address":"10.1.0.9/24"},{"address":"10.1.0.10/24"},
		{"address":"10.7.0.1/32"},{"address":"fd00:1::9/64"},{"address":"fd00:2::9/128"}]}')"
	is '[.ips[] | [.address, .interface]]' '[["10.1.0.9/24",2],["10.1.0.10/24",2],["10.7.0.1/32",2],
		["fd00:1::9/64",2],["fd00:2::9/128",2]]'
	same addresses "10.1.0.9/24 10.1.0.10/24 10.7.0.1/32 fd00:1::9/64 fd00:2::9/128" \
		"$(addrs c1 eth0 | tr ' ' '\n' | sort | sed 's/^10.1.0.10/10.1.0.9x/' | sort |
			sed 's/9x/10/' | xargs)"
}

@test "hundreds of addresses and routes" {
	local n=400
	add c1 "$(fake "$(jq -nc --argjson n $n '{ips: [range($n) | {address: "10.\(100 + . / 200 | floor).0.\(. % 200 + 1)/16"}],
		routes: [range($n) | {dst: "10.\(200 + . / 200 | floor).\(. % 200).0/24", gw: "10.100.0.200"}]}')")"
	is '[.ips, .routes | length]' "[$n,$n]"
	inside_is c1 '[.[].addr_info[]] | length' $n ip -j -4 addr show eth0
	inside_is c1 '[.[] | select(.gateway)] | length' $n ip -j route
	check "$(fake '{}')" c1
	del c1 "$(fake '{}')"
	nothing_left br0
}

@test "IPv6 works where it is switched off by default" {
	netns c1
	inside c1 sh -c 'for i in default lo; do echo 1 >/proc/sys/net/ipv6/conf/$i/disable_ipv6; done'
	add c1 "$(dual)"
	same "eth0" 0 "$(sysctl c1 ipv6/conf/eth0/disable_ipv6)"
	same "lo" 0 "$(sysctl c1 ipv6/conf/lo/disable_ipv6)"
	same "default" 1 "$(sysctl c1 ipv6/conf/default/disable_ipv6)"
	same addresses "10.1.0.2/24 fd00:1::2/64" "$(addrs c1 eth0)"
}

@test "IPv6 addresses outlive a down" {
	only_cnibox "newer than release 1.1.1"
	add c1 "$(dual)"
	same keep_addr_on_down 1 "$(sysctl c1 ipv6/conf/eth0/keep_addr_on_down)"
	inside c1 ip link set eth0 down
	same addresses "10.1.0.2/24 fd00:1::2/64" "$(addrs c1 eth0)"
}

@test "dual stack: both families pass between containers and to the gateway, at once" {
	local c
	c=$(l2 '{"isDefaultGateway":true,"ipam":{"type":"host-local",
		"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd00:1::/64","gateway":"fd00:1::1"}]]}}')
	add c1 "$c"
	inside_is c1 '[.[].addr_info[] | select(.tentative)]' '[]' ip -j -6 addr show scope global
	add c2 "$c"
	is '[.ips[] | [.address, .gateway]]' '[["10.1.0.3/24","10.1.0.1"],["fd00:1::3/64","fd00:1::1"]]'
	is .routes '[{"dst":"0.0.0.0/0","gw":"10.1.0.1"},{"dst":"::/0","gw":"fd00:1::1"}]'
	serve c2 80
	serve c2 80 tcp -6
	serve host 81
	serve host 81 tcp -6
	same "IPv4" "c2 10.1.0.2" "$(ask c1 tcp 10.1.0.3 80)"
	same "IPv6" "c2 fd00:1::2" "$(ask c1 tcp fd00:1::3 80)"
	same "gateway IPv4" "host 10.1.0.2" "$(ask c1 tcp 10.1.0.1 81)"
	# The Go plugin's gateway is in duplicate address detection for a while.
	is_cnibox || wait_for 60 host sh -c '! ip -6 addr show br0 | grep -q tentative'
	same "gateway IPv6" "host fd00:1::2" "$(ask c1 tcp fd00:1::1 81)"
	same "addresses of the bridge" "10.1.0.1/24 fd00:1::1/64" "$(addrs host br0)"
	same "forwarding" "1 1" "$(sysctl host ipv4/ip_forward) $(sysctl host ipv6/conf/all/forwarding)"
	inside_is c2 '[.[] | select(.dst == "default") | [.gateway, .dev]]' '[["10.1.0.1","eth0"]]' ip -j -4 route
	inside_is c2 '[.[] | select(.dst == "default") | [.gateway, .dev]]' '[["fd00:1::1","eth0"]]' ip -j -6 route
}

# ---- gateways ---------------------------------------------------------------------------------

@test "isGateway: the bridge has the gateway's address, forwarding of that family only" {
	add c1 "$(l3 '{"isGateway":true}')"
	is .ips '[{"address":"10.1.0.2/24","gateway":"10.1.0.1","interface":2}]'
	is '.routes // []' '[]'
	same "addresses of the bridge" 10.1.0.1/24 "$(addrs host br0)"
	same "forwarding" "1 0" "$(sysctl host ipv4/ip_forward) $(sysctl host ipv6/conf/all/forwarding)"
	serve host 80
	same answer "host 10.1.0.2" "$(ask c1 tcp 10.1.0.1 80)"
	add c2 "$(l3 '{"isGateway":true}')"
	same "addresses of the bridge" 10.1.0.1/24 "$(addrs host br0)"
	del c1 "$(l3 '{"isGateway":true}')"
	same "addresses of the bridge" 10.1.0.1/24 "$(addrs host br0)"
	same answer "host 10.1.0.3" "$(ask c2 tcp 10.1.0.1 80)"
}

@test "isGateway: a gateway that IPAM does not name is the first address of the network" {
	add c1 "$(fake '{"ips":[{"address":"10.1.2.9/23"},{"address":"fd00:1::9/64"}]}' '{"isGateway":true}')"
	is '[.ips[].gateway]' '["10.1.2.1","fd00:1::1"]'
	same "addresses of the bridge" "10.1.2.1/23 fd00:1::1/64" "$(addrs host br0)"
}

@test "without isGateway no gateway is invented" {
	add c1 "$(fake '{"ips":[{"address":"10.1.2.9/23"}]}')"
	is '.ips' '[{"address":"10.1.2.9/23","interface":2}]'
	same "addresses of the bridge" "" "$(addrs host br0)"
}

@test "isGateway without IPAM does nothing" {
	add c1 "$(l2 '{"isGateway":true,"isDefaultGateway":true}')"
	is '.routes // []' '[]'
	same "forwarding" 0 "$(sysctl host ipv4/ip_forward)"
	same "addresses of the bridge" "" "$(addrs host br0)"
}

@test "isDefaultGateway: a default route, in the result and in the container" {
	add c1 "$(l3 '{"isDefaultGateway":true}')"
	is .routes '[{"dst":"0.0.0.0/0","gw":"10.1.0.1"}]'
	inside_is c1 '[.[] | select(.dst == "default") | .gateway]' '["10.1.0.1"]' ip -j route
	same "addresses of the bridge" 10.1.0.1/24 "$(addrs host br0)"
}

@test "isDefaultGateway: one route per family, however many addresses" {
	add c1 "$(fake '{"ips":[{"address":"10.1.0.9/24"},{"address":"10.1.0.10/24"},
		{"address":"fd00:1::9/64"},{"address":"fd00:1::10/64"}]}' '{"isDefaultGateway":true}')"
	is .routes '[{"dst":"0.0.0.0/0","gw":"10.1.0.1"},{"dst":"::/0","gw":"fd00:1::1"}]'
}

@test "isDefaultGateway: a default route of IPAM's with a gateway is kept" {
	add c1 "$(l3 '{"isDefaultGateway":true,"ipam":{"routes":[{"dst":"0.0.0.0/0","gw":"10.1.0.77"}]}}')"
	is .routes '[{"dst":"0.0.0.0/0","gw":"10.1.0.77"}]'
	inside_is c1 '[.[] | select(.dst == "default") | .gateway]' '["10.1.0.77"]' ip -j route
}

@test "isDefaultGateway: a default route of IPAM's without gateway is the default route" {
	only_cnibox "adds a second one and fails on it with 'file exists'"
	add c1 "$(dual '{"isDefaultGateway":true,"ipam":{"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]}}')"
	is '[.routes[].dst]' '["0.0.0.0/0","::/0"]'
	inside_is c1 '[.[] | select(.dst == "default") | .gateway]' '["10.1.0.1"]' ip -j -4 route
	inside_is c1 '[.[] | select(.dst == "default") | .gateway]' '["fd00:1::1"]' ip -j -6 route
	check "$(dual '{"isDefaultGateway":true}')" c1
}

@test "isDefaultGateway: dual stack where IPAM has a default route of one family only" {
	add c1 "$(dual '{"isDefaultGateway":true,"ipam":{"routes":[{"dst":"0.0.0.0/0","gw":"10.1.0.9"}]}}')"
	is .routes '[{"dst":"0.0.0.0/0","gw":"10.1.0.9"},{"dst":"::/0","gw":"fd00:1::1"}]'
}

@test "an address in the way fails ADD and stays" {
	taken_bridge
	host ip addr add 10.1.0.9/24 dev br0
	netns c1
	fails 102 '"br0" already has an IP address different from 10.1.0.1/24' \
		ADD bridge c1 <<<"$(l3 '{"isGateway":true}')"
	same "addresses of the bridge" 10.1.0.9/24 "$(addrs host br0)"
	same leases '' "$(leases)"
	same forwarding 0 "$(sysctl host ipv4/ip_forward)"
}

@test "an IPv4 address of another network is in the way, too" {
	taken_bridge
	host ip addr add 192.168.7.1/24 dev br0
	netns c1
	fails 102 'failed to set bridge addr: "br0" already has an IP address different from' \
		ADD bridge c1 <<<"$(l3 '{"isGateway":true}')"
}

@test "IPv6: only an overlapping network is in the way" {
	taken_bridge
	host ip addr add fd00:7::1/64 dev br0 nodad
	add c1 "$(dual '{"isGateway":true}')"
	same "addresses of the bridge" "10.1.0.1/24 fd00:1::1/64 fd00:7::1/64" \
		"$(addrs host br0 | tr ' ' '\n' | sort | xargs)"
	netns c2
	fails 102 '"br0" already has an IP address different from fd00:7::5/96' ADD bridge c2 \
		<<<"$(fake '{"ips":[{"address":"fd00:7::9/96","gateway":"fd00:7::5"}]}' '{"isGateway":true}')"
}

@test "the gateway's address being there already is no conflict, alone or with others behind it" {
	taken_bridge
	host ip addr add 10.1.0.1/24 dev br0
	add c1 "$(l3 '{"isGateway":true}')"
	host ip addr add 192.168.7.1/24 dev br0
	add c2 "$(l3 '{"isGateway":true}')"
	same "addresses of the bridge" "10.1.0.1/24 192.168.7.1/24" "$(addrs host br0)"
}

@test "a link-local gateway is not in conflict with the bridge's own address" {
	only_cnibox "takes the bridge's link-local address for a conflict"
	taken_bridge
	host ip link set br0 up
	host ip addr add fe80::77/64 dev br0 nodad
	add c1 "$(fake '{"ips":[{"address":"fd00:1::9/64","gateway":"fe80::1"}]}' '{"isDefaultGateway":true}')"
	host_is '[.[].addr_info[] | select(.local == "fe80::1")] | length' 1 ip -j -6 addr show br0
	host_is '[.[].addr_info[] | select(.local == "fe80::77")] | length' 1 ip -j -6 addr show br0
	inside_is c1 '[.[] | select(.dst == "default") | .gateway]' '["fe80::1"]' ip -j -6 route
}

@test "forceAddress replaces every address in the way" {
	taken_bridge
	host ip addr add 10.1.0.9/24 dev br0
	host ip addr add 192.168.7.1/24 dev br0
	host ip addr add fd00:1::77/64 dev br0 nodad
	host ip addr add fd00:7::1/64 dev br0 nodad
	add c1 "$(dual '{"isGateway":true,"forceAddress":true}')"
	same "addresses of the bridge" "10.1.0.1/24 fd00:1::1/64 fd00:7::1/64" \
		"$(addrs host br0 | tr ' ' '\n' | sort | xargs)"
	serve host 80
	same answer "host 10.1.0.2" "$(ask c1 tcp 10.1.0.1 80)"
}

@test "two IPv4 networks at once cannot both have their gateway on one bridge" {
	local c
	c=$(l2 '{"isGateway":true,"ipam":{"type":"host-local",
		"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.2.0.0/24"}]]}}')
	netns c1
	fails 102 'already has an IP address different from 10.2.0.1/24' ADD bridge c1 <<<"$c"
	same leases '' "$(leases)"
}

@test "a failing ADD takes back the address it put on a bridge that was there" {
	only_cnibox "leaves it"
	taken_bridge
	netns c1
	fails 102 'already has an IP address' ADD bridge c1 <<<"$(l2 '{"isGateway":true,"ipam":
		{"type":"host-local","ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.2.0.0/24"}]]}}')"
	same "addresses of the bridge" '' "$(addrs host br0)"
	nothing_left br0
}

# ---- results in every version -----------------------------------------------------------------

# The rules are the same in all: IPv4 and IPv6, a route, DNS.
versioned() { VERSION=$1 dual '{"isDefaultGateway":true,"dns":{"nameservers":["10.0.0.53"]}}'; }

@test "the result in versions 1.0.0 and 1.1.0" {
	local v list=1.0.0
	! is_cnibox || list='1.0.0 1.1.0'
	for v in $list; do
		add c1 "$(versioned $v)"
		is 'keys' '["cniVersion","dns","interfaces","ips","routes"]'
		is .cniVersion "\"$v\""
		is '[.interfaces[] | del(.mtu) | keys]' '[["mac","name"],["mac","name"],["mac","name","sandbox"]]'
		is .ips '[{"address":"10.1.0.2/24","gateway":"10.1.0.1","interface":2},
			{"address":"fd00:1::2/64","gateway":"fd00:1::1","interface":2}]'
		is .routes '[{"dst":"0.0.0.0/0","gw":"10.1.0.1"},{"dst":"::/0","gw":"fd00:1::1"}]'
		is .dns '{"nameservers":["10.0.0.53"]}'
		del c1 "$(versioned $v)"
		host rm -rf /var/lib/cni/networks/net1
	done
}

@test "the result in versions 0.3.0, 0.3.1 and 0.4.0" {
	local v
	for v in 0.3.0 0.3.1 0.4.0; do
		add c1 "$(versioned $v)"
		is 'keys' '["cniVersion","dns","interfaces","ips","routes"]'
		is .cniVersion "\"$v\""
		is .ips '[{"version":"4","address":"10.1.0.2/24","gateway":"10.1.0.1","interface":2},
			{"version":"6","address":"fd00:1::2/64","gateway":"fd00:1::1","interface":2}]'
		is .routes '[{"dst":"0.0.0.0/0","gw":"10.1.0.1"},{"dst":"::/0","gw":"fd00:1::1"}]'
		is .dns '{"nameservers":["10.0.0.53"]}'
		is '.interfaces | length' 3
		del c1 "$(versioned $v)"
		host rm -rf /var/lib/cni/networks/net1
	done
}

@test "the result in versions 0.1.0 and 0.2.0" {
	local v
	for v in 0.1.0 0.2.0 ''; do
		add c1 "$(versioned $v)"
		is 'keys - ["cniVersion"]' '["dns","ip4","ip6"]'
		is '.cniVersion // "0.1.0"' "\"${v:-0.1.0}\""
		is .ip4 '{"ip":"10.1.0.2/24","gateway":"10.1.0.1","routes":[{"dst":"0.0.0.0/0","gw":"10.1.0.1"}]}'
		is .ip6 '{"ip":"fd00:1::2/64","gateway":"fd00:1::1","routes":[{"dst":"::/0","gw":"fd00:1::1"}]}'
		is .dns '{"nameservers":["10.0.0.53"]}'
		del c1 "$(versioned $v)"
		host rm -rf /var/lib/cni/networks/net1
	done
}

@test "layer 2 cannot be said in 0.1.0 and 0.2.0, and nothing is made" {
	local v
	netns c1
	for v in 0.1.0 0.2.0; do
		fails 7 'cannot convert: no valid IP addresses' ADD bridge c1 <<<"$(VERSION=$v l2)"
		! is_cnibox || nothing_left
		ok DEL bridge c1 <<<"$(VERSION=$v l2)"
	done
}

@test "spec versions that do not exist are refused" {
	netns c1
	fails 1 'incompatible CNI versions' ADD bridge c1 <<<"$(VERSION=9.9.9 l2)"
	nothing_left
}
