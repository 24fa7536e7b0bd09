# bridge: containers on a Linux bridge. Layer 2, layer 3, what fails and what is left then. Rules in
# the firewall (ipMasq, macspoofchk) are in bridge-nft.bats, VLANs in tests/vm/vlan.bats.

load helpers

setup() {
	need_applet bridge host-local
	sandbox
	mkdir "$T/bin"
	export CNI_PATH=$CNI_PLUGIN_DIR:$T/bin
}
teardown() { sandbox_end; }

GO_DIR=${CNI_GO_DIR:-/usr/lib/cni}
need_go() { [ -x "$GO_DIR/bridge" ] && [ ! -L "$GO_DIR/bridge" ] || skip "no Go plugins in $GO_DIR"; }

# l2 [KEYS]: a config without IPAM, with these keys.
l2() {
	jq -nc --argjson keys "${1:-"{}"}" --arg v "${VERSION-1.0.0}" \
		'{cniVersion: $v, name: "net1", type: "bridge", bridge: "br0"} * $keys'
}

# l3 [KEYS]: with addresses from 10.1.0.0/24, the gateway being 10.1.0.1.
l3() {
	l2 "$(jq -nc --argjson keys "${1:-"{}"}" \
		'{ipam: {type: "host-local", subnet: "10.1.0.0/24"}} * $keys')"
}

# dual [KEYS]: from 10.1.0.0/24 and fd00:1::/64.
dual() {
	l2 "$(jq -nc --argjson keys "${1:-"{}"}" '{ipam: {type: "host-local",
		ranges: [[{subnet: "10.1.0.0/24"}], [{subnet: "fd00:1::/64"}]]}} * $keys')"
}

# fake RESULT [KEYS]: a config whose IPAM plugin is a double that answers ADD with RESULT. What it
# was called with is in $T/fake.log; it refuses a verb with what is in $T/refuse.VERB.
fake() {
	cat >"$T/bin/fake" <<-END
		#!/bin/sh
		cat >"$T/stdin.\$CNI_COMMAND"
		echo "\$CNI_COMMAND \$CNI_CONTAINERID \$CNI_IFNAME" >>"$T/fake.log"
		if [ -e "$T/refuse.\$CNI_COMMAND" ]; then cat "$T/refuse.\$CNI_COMMAND"; exit 1; fi
		[ "\$CNI_COMMAND" != ADD ] || cat "$T/result"
	END
	chmod +x "$T/bin/fake"
	jq -n --argjson r "$1" --arg v "${VERSION:-1.0.0}" '{cniVersion: $v} + $r' >"$T/result"
	l2 "$(jq -nc --argjson keys "${2:-"{}"}" '{ipam: {type: "fake"}} * $keys')"
}
refuse() { printf '%s' '{"cniVersion":"1.0.0","code":55,"msg":"no more","details":"really"}' >"$T/refuse.$1"; }

# add ID CONFIG [IFNAME]: the namespace and the ADD. Sets port and keeps the result.
add() {
	host test -e "/run/netns/$1" || netns "$1"
	ok ADD bridge "$1" "${3:-eth0}" <<<"$2"
	port=$(jq -r '.interfaces[1].name' <<<"$output")
	printf '%s' "$output" >"$T/result-$1-${3:-eth0}"
}
del() { ok DEL bridge "$1" "${3:-eth0}" <<<"$2"; }

# with_prev CONFIG ID [FILTER]: the config with the result of that ADD, changed by the filter.
with_prev() {
	jq -c --slurpfile r "$T/result-$2-eth0" ".prevResult = (\$r[0] | ${3:-.})" <<<"$1"
}
check() { ok CHECK bridge "$2" <<<"$(with_prev "$1" "$2")"; }
# mismatch REGEX CONFIG ID [FILTER]
mismatch() { fails 101 "$1" CHECK bridge "$3" <<<"$(with_prev "$2" "$3" "${4:-.}")"; }

# link NAME FILTER EXPECTED, link_in NS NAME FILTER EXPECTED: of ip -d -j link.
link() { host_is ".[0] | $2" "$3" ip -d -j link show dev "$1"; }
link_in() { inside_is "$1" ".[0] | $3" "$4" ip -d -j link show dev "$2"; }
mac_of() { host cat "/sys/class/net/$1/address"; }
# The addresses of a device as ADDRESS/LEN, link-local ones left out.
addrs() { inside "$1" ip -j addr show dev "$2" | jq -r '.[].addr_info[]? | select(.scope == "global")
	| "\(.local)/\(.prefixlen)"' | xargs; }
sysctl() { inside "$1" cat "/proc/sys/net/$2"; }
ports() { host ip -j link show master "${1:-br0}" | jq length; }
leases() { host sh -c 'ls /var/lib/cni/networks/net1 2>/dev/null | grep -v -e ^lock -e ^last' | xargs; }
taken_bridge() { host ip link add br0 type bridge; }

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

# ---- port and bridge settings -----------------------------------------------------------------

@test "hairpinMode: a frame may leave by the port it came from" {
	add c1 "$(l3)"
	link "$port" .linkinfo.info_slave_data.hairpin false
	add c2 "$(l3 '{"hairpinMode":true}')"
	link "$port" .linkinfo.info_slave_data.hairpin true
	for c in c1 c2; do
		spawn "$c" sh -c "exec tcpdump -lnp -Q in -i eth0 'arp and dst net 10.1.0.98/31' >$T/$c 2>$T/$c.err"
		wait_for 60 grep -q 'listening on' "$T/$c.err"
	done
	inside c2 ping -c 1 -W 1 10.1.0.99 >/dev/null || :
	inside c1 ping -c 1 -W 1 10.1.0.98 >/dev/null || :
	for c in c1 c2; do
		wait_for 60 grep -q 'who-has 10.1.0.99 ' "$T/$c"
	done
	wait_for 60 grep -q 'who-has 10.1.0.98 ' "$T/c2"
	! grep 'who-has 10.1.0.98 ' "$T/c1"
}

@test "promiscMode: the bridge is promiscuous and stays so" {
	add c1 "$(l2 '{"promiscMode":true}')"
	link br0 '.flags | index("PROMISC") != null' true
	add c2 "$(l2)"
	link br0 '.flags | index("PROMISC") != null' true
}

@test "promiscMode on a bridge that was there" {
	taken_bridge
	add c1 "$(l2 '{"promiscMode":true}')"
	link br0 '.flags | index("PROMISC") != null' true
}

@test "hairpinMode and promiscMode exclude each other" {
	netns c1
	fails 7 'cannot set hairpin mode and promiscuous mode at the same time' \
		ADD bridge c1 <<<"$(l2 '{"promiscMode":true,"hairpinMode":true}')"
	nothing_left
}

@test "mtu: of the new bridge and both ends" {
	add c1 "$(l2 '{"mtu":1400}')"
	link br0 .mtu 1400
	link "$port" .mtu 1400
	link_in c1 eth0 .mtu 1400
	is '[.interfaces[].mtu]' '[null,null,null]'
}

@test "mtu: a bridge that was there keeps its own" {
	taken_bridge
	host ip link set br0 mtu 1450
	add c1 "$(l2 '{"mtu":9000}')"
	link br0 .mtu 1450
	link "$port" .mtu 9000
	link_in c1 eth0 .mtu 9000
}

@test "mtu: zero and less are the kernel's default, beyond its limits is refused" {
	add c1 "$(l2 '{"mtu":0}')"
	link_in c1 eth0 .mtu 1500
	add c2 "$(l2 '{"mtu":-5,"bridge":"br1"}')"
	link_in c2 eth0 .mtu 1500
	netns c3
	fails 7 'invalid argument' ADD bridge c3 <<<"$(l2 '{"mtu":67,"bridge":"br2"}')"
	fails 7 'invalid argument' ADD bridge c3 <<<"$(l2 '{"mtu":65536,"bridge":"br2"}')"
}

@test "the transmit queue of the host's end has its normal length" {
	only_cnibox "sets it to 0 by accident"
	add c1 "$(l2)"
	link "$port" .txqlen 1000
	link_in c1 eth0 .txqlen 1000
}

@test "portIsolation: isolated ports cannot talk, an isolated and a plain one can" {
	only_cnibox "newer than release 1.1.1"
	add c1 "$(l3 '{"portIsolation":true,"isGateway":true}')"
	link "$port" .linkinfo.info_slave_data.isolated true
	add c2 "$(l3 '{"portIsolation":true,"isGateway":true}')"
	add c3 "$(l3 '{"isGateway":true}')"
	link "$port" .linkinfo.info_slave_data.isolated false
	serve c2 80
	serve c3 80
	serve host 80
	same "isolated to isolated" "" "$(knock c1 tcp 10.1.0.3 80)"
	same "isolated to plain" "c3 10.1.0.2" "$(ask c1 tcp 10.1.0.4 80)"
	same "plain to isolated" "c2 10.1.0.4" "$(ask c3 tcp 10.1.0.3 80)"
	same "isolated to the gateway" "host 10.1.0.2" "$(ask c1 tcp 10.1.0.1 80)"
}

@test "disableContainerInterface leaves the container's end down" {
	only_cnibox "newer than release 1.1.1"
	add c1 "$(l2 '{"disableContainerInterface":true}')"
	link_in c1 eth0 '.flags | index("UP") == null' true
	link "$port" '.flags | contains(["NO-CARRIER","UP"])' true
	link "$port" .master br0
	check "$(l2 '{"disableContainerInterface":true}')" c1
	inside c1 ip link set eth0 up
	wait_for 60 host sh -c "ip link show $port | grep -q LOWER_UP"
	del c1 "$(l2 '{"disableContainerInterface":true}')"
	nothing_left br0
}

@test "disableContainerInterface excludes IPAM" {
	only_cnibox "newer than release 1.1.1"
	netns c1
	fails 7 'cannot use IPAM when DisableContainerInterface flag is set' \
		ADD bridge c1 <<<"$(l3 '{"disableContainerInterface":true}')"
	nothing_left
}

@test "enabledad: duplicate address detection of the container's addresses" {
	add c1 "$(dual '{"enabledad":true,"isGateway":true}')"
	same accept_dad 1 "$(sysctl c1 ipv6/conf/eth0/accept_dad)"
	same enhanced_dad 1 "$(sysctl c1 ipv6/conf/eth0/enhanced_dad)"
	inside_is c1 '[.[].addr_info[] | select(.tentative or .nodad)]' '[]' ip -j -6 addr show scope global
}

@test "enabledad: an address that somebody has fails ADD" {
	only_cnibox "release 1.1.1 succeeds when its time is out"
	local c
	c=$(fake '{"ips":[{"address":"fd00:1::9/64"}]}' '{"enabledad":true,"isGateway":true}')
	add c1 "$c"
	netns c2
	fails 102 'has address fd00:1::9/64 in DADFAILED state' \
		ADD bridge c2 <<<"$c"
	same "calls of IPAM" $'ADD c1 eth0\nADD c2 eth0\nDEL c2 eth0' "$(<"$T/fake.log")"
}

# ---- MAC address ------------------------------------------------------------------------------

# mac_is WANTED ID CONFIG: the container's MAC after an ADD with CNI_ARGS=$ARGS.
mac_is() {
	netns "$2"
	CNI_ARGS=${ARGS-} ok ADD bridge "$2" <<<"$3"
	is '.interfaces[2].mac' "$1"
	link_in "$2" eth0 .address "$1"
}

@test "MAC: from runtimeConfig, args or CNI_ARGS, in this order" {
	local a='"args":{"cni":{"mac":"02:00:00:00:00:02"}}' r='"runtimeConfig":{"mac":"02:00:00:00:00:01"}'
	ARGS='IgnoreUnknown=1;MAC=02:00:00:00:00:03' mac_is 02:00:00:00:00:01 c1 "$(l2 "{$a,$r}")"
	ARGS='MAC=02:00:00:00:00:03' mac_is 02:00:00:00:00:02 c2 "$(l2 "{$a}")"
	ARGS='MAC=02:00:00:00:00:03' mac_is 02:00:00:00:00:03 c3 "$(l2)"
	ARGS='' mac_is 02:00:00:00:00:01 c4 "$(l2 "{$r}")"
}

@test "MAC: an empty string does not count" {
	ARGS='MAC=02:00:00:00:00:03' mac_is 02:00:00:00:00:03 c1 \
		"$(l2 '{"args":{"cni":{"mac":""}},"runtimeConfig":{"mac":""}}')"
	ARGS='MAC=' mac_is 02:00:00:00:00:02 c2 "$(l2 '{"args":{"cni":{"mac":"02:00:00:00:00:02"}}}')"
}

@test "MAC: with colons, hyphens or dots, in upper or lower case" {
	mac_is 02:00:00:00:ab:96 c1 "$(l2 '{"runtimeConfig":{"mac":"02-00-00-00-AB-96"}}')"
	mac_is 02:00:00:00:ac:96 c2 "$(l2 '{"runtimeConfig":{"mac":"0200.0000.ac96"}}')"
	mac_is 02:00:00:00:ad:96 c3 "$(l2 '{"runtimeConfig":{"mac":"02:00:00:00:Ad:96"}}')"
}

@test "MAC: what is none is refused" {
	local m
	netns c1
	for m in zz 02:00:00:00:00 02:00:00:00:00:0g 02:00-00:00:00:00 020000000096 02:00:00:00:00:00:; do
		fails 7 'invalid MAC address' ADD bridge c1 <<<"$(l2 '{"runtimeConfig":{"mac":"'$m'"}}')"
	done
	for m in 01:00:00:00:00:01 ff:ff:ff:ff:ff:ff 00:00:00:00:00:00 02:00:00:00:00:00:00:01; do
		fails 7 . ADD bridge c1 <<<"$(l2 '{"runtimeConfig":{"mac":"'$m'"}}')"
	done
	inside c1 sh -c '! ip link show eth0'
}

@test "MAC: refused before anything is made" {
	only_cnibox "leaves the bridge"
	netns c1
	fails 7 'invalid MAC address' ADD bridge c1 <<<"$(l2 '{"runtimeConfig":{"mac":"zz"}}')"
	fails 7 . ADD bridge c1 <<<"$(l2 '{"runtimeConfig":{"mac":"01:00:00:00:00:01"}}')"
	nothing_left
}

@test "CNI_ARGS: pieces must be pairs with known keys" {
	netns c1
	CNI_ARGS='MAC' fails 4 'ARGS: invalid pair' ADD bridge c1 <<<"$(l2)"
	CNI_ARGS='MAC=02:00:00:00:00:01;' fails 4 'ARGS: invalid pair' ADD bridge c1 <<<"$(l2)"
	CNI_ARGS='A=b=c' fails 4 'ARGS: invalid pair' ADD bridge c1 <<<"$(l2)"
	CNI_ARGS='K8S_POD_NAME=x' fails 4 'ARGS: unknown args' ADD bridge c1 <<<"$(l2)"
	CNI_ARGS='mac=02:00:00:00:00:01' fails 4 'ARGS: unknown args' ADD bridge c1 <<<"$(l2)"
	nothing_left
	CNI_ARGS='K8S_POD_NAME=x;IgnoreUnknown=true' ok ADD bridge c1 <<<"$(l2)"
}

@test "DEL works whatever CNI_ARGS holds" {
	only_cnibox "fails on arguments it does not know, even in DEL"
	add c1 "$(l3)"
	CNI_ARGS='K8S_POD_NAME=x;;' del c1 "$(l3)"
	nothing_left br0
}

# ---- routes and DNS ---------------------------------------------------------------------------

@test "routes: with a gateway of their own, or the address's" {
	add c1 "$(l3 '{"ipam":{"routes":[{"dst":"10.7.0.0/16"},{"dst":"10.8.0.0/16","gw":"10.1.0.77"}]}}')"
	is .routes '[{"dst":"10.7.0.0/16"},{"dst":"10.8.0.0/16","gw":"10.1.0.77"}]'
	inside_is c1 '[.[] | select(.gateway) | [.dst, .gateway, .protocol]] | sort' \
		'[["10.7.0.0/16","10.1.0.1","boot"],["10.8.0.0/16","10.1.0.77","boot"]]' ip -j -N route ||
		inside_is c1 '[.[] | select(.gateway) | [.dst, .gateway]] | sort' \
			'[["10.7.0.0/16","10.1.0.1"],["10.8.0.0/16","10.1.0.77"]]' ip -j route
}

@test "routes: without any gateway, on the link" {
	add c1 "$(fake '{"ips":[{"address":"10.1.0.9/24"}],"routes":[{"dst":"0.0.0.0/0"},{"dst":"10.7.0.0/16"}]}')"
	inside_is c1 '[.[] | select(.gateway)]' '[]' ip -j route
	inside_is c1 '[.[].dst] | sort' '["10.1.0.0/24","10.7.0.0/16","default"]' ip -j route
}

@test "routes: one that the kernel refuses fails ADD, and IPAM is asked to release" {
	local c
	c=$(fake '{"ips":[{"address":"10.1.0.9/24"}],"routes":[{"dst":"10.7.0.0/16","gw":"192.168.9.9"}]}')
	netns c1
	fails 100 'failed to add route .*10.7.0.0(/16| ffff0000)' ADD bridge c1 <<<"$c"
	same calls $'ADD c1 eth0\nDEL c1 eth0' "$(<"$T/fake.log")"
}

@test "routes: mtu, advmss, priority, table and scope are applied" {
	only_cnibox "newer than release 1.1.1"
	VERSION=1.1.0
	add c1 "$(fake '{"ips":[{"address":"10.1.0.9/24","gateway":"10.1.0.1"},{"address":"fd00:1::9/64","gateway":"fd00:1::1"}],
		"routes":[{"dst":"10.7.0.0/16","mtu":1400,"advmss":1300,"priority":77},
		{"dst":"10.8.0.0/16","table":100},{"dst":"10.9.0.0/16","scope":253},
		{"dst":"10.8.0.0/16","table":5000,"priority":3},
		{"dst":"fd00:7::/64","mtu":1350,"priority":9},{"dst":"fd00:8::/64","table":100}]}')"
	is '[.routes[] | del(.dst)]' '[{"mtu":1400,"advmss":1300,"priority":77},{"table":100},{"scope":253},
		{"table":5000,"priority":3},{"mtu":1350,"priority":9},{"table":100}]'
	inside_is c1 '.[0] | [.gateway, .metric, .metrics[0].mtu, .metrics[0].advmss]' \
		'["10.1.0.1",77,1400,1300]' ip -j route show 10.7.0.0/16
	inside_is c1 '.[0].gateway' 10.1.0.1 ip -j route show 10.8.0.0/16 table 100
	inside_is c1 '.[0] | [.gateway, .metric]' '["10.1.0.1",3]' ip -j route show 10.8.0.0/16 table 5000
	inside_is c1 '.[0] | [.scope, .gateway]' '["link",null]' ip -j route show 10.9.0.0/16
	inside_is c1 '[.[] | select(.dst == "10.8.0.0/16")]' '[]' ip -j route
	inside_is c1 '.[0] | [.gateway, .metric, .metrics[0].mtu]' '["fd00:1::1",9,1350]' \
		ip -j -6 route show fd00:7::/64
	inside_is c1 '.[0].gateway' fd00:1::1 ip -j -6 route show fd00:8::/64 table 100
	check "$(fake '{}')" c1
	inside c1 ip route del 10.8.0.0/16 table 100
	mismatch 'Expected Route .*10.8.0.0/16.* not found' "$(fake '{}')" c1
}

@test "DNS: IPAM's, unless the config has one of its own, even as an empty list" {
	only_cnibox "release 1.1.1 always takes the config's"
	local r='{"ips":[{"address":"10.1.0.9/24"}],"dns":{"nameservers":["10.0.0.53"],"domain":"ipam.example"}}'
	add c1 "$(fake "$r")"
	is .dns '{"nameservers":["10.0.0.53"],"domain":"ipam.example"}'
	add c2 "$(fake "$(jq -c '.ips[0].address = "10.1.0.10/24"' <<<"$r")" '{"dns":{"search":["a.example"]}}')"
	is .dns '{"search":["a.example"]}'
	add c3 "$(fake "$(jq -c '.ips[0].address = "10.1.0.11/24"' <<<"$r")" '{"dns":{"nameservers":[]}}')"
	is '.dns // {}' '{}'
	add c4 "$(fake "$(jq -c '.ips[0].address = "10.1.0.12/24"' <<<"$r")" '{"dns":{"domain":""}}')"
	is .dns.domain ipam.example
	add c5 "$(fake "$(jq -c '.ips[0].address = "10.1.0.13/24"' <<<"$r")" '{"dns":{"domain":"x.example"}}')"
	is .dns '{"domain":"x.example"}'
}

@test "DNS: of the config with layer 2" {
	add c1 "$(l2 '{"dns":{"nameservers":["10.0.0.53"],"search":["a"],"options":["o"],"domain":"d"}}')"
	is .dns '{"nameservers":["10.0.0.53"],"search":["a"],"options":["o"],"domain":"d"}'
}

# ---- the bridge itself ------------------------------------------------------------------------

@test "a bridge that was there is used as it is" {
	taken_bridge
	host ip link set br0 mtu 1450 alias mine
	host ip link add p0 type veth peer name p1
	host ip link set p0 master br0
	host ip link set p0 up
	add c1 "$(l3 '{"mtu":1400}')"
	link br0 '[.mtu, .ifalias]' '[1450,"mine"]'
	link br0 '.flags | index("UP") != null' true
	same "MAC of the bridge" "$(mac_of br0)" "$(jq -r '.interfaces[0].mac' <<<"$output")"
	same ports 2 "$(ports)"
	same "accept_ra" 0 "$(sysctl host ipv6/conf/br0/accept_ra)"
	check "$(l3)" c1
	del c1 "$(l3)"
	nothing_left br0 p0 p1
}

@test "a bridge that was there and is empty: the MAC reported is the one it has then" {
	taken_bridge
	add c1 "$(l3)"
	same "MAC of the bridge" "$(mac_of br0)" "$(jq -r '.interfaces[0].mac' <<<"$output")"
}

@test "a bridge that was there: the gateway's MAC stays, however ports come and go" {
	taken_bridge
	add c1 "$(l3 '{"isGateway":true}')"
	local mac
	mac=$(mac_of br0)
	same "MAC of the bridge" "$mac" "$(jq -r '.interfaces[0].mac' <<<"$output")"
	host ip link add p0 address 00:00:00:00:00:01 type veth peer name p1
	host ip link set p0 master br0
	same "MAC of the bridge" "$mac" "$(mac_of br0)"
	del c1 "$(l3 '{"isGateway":true}')"
	same "MAC of the bridge" "$mac" "$(mac_of br0)"
}

@test "the bridge's MAC is fixed from the first ADD on" {
	only_cnibox "without a gateway it follows the ports, and CHECK fails"
	local mac
	add c1 "$(l2)"
	mac=$(mac_of br0)
	same "MAC of the bridge" "$mac" "$(jq -r '.interfaces[0].mac' <<<"$output")"
	host ip link add p0 address 00:00:00:00:00:01 type veth peer name p1
	host ip link set p0 master br0
	same "MAC of the bridge" "$mac" "$(mac_of br0)"
	add c2 "$(l2)"
	same "MAC of the bridge" "$mac" "$(jq -r '.interfaces[0].mac' <<<"$output")"
	del c1 "$(l2)"
	same "MAC of the bridge" "$mac" "$(mac_of br0)"
	check "$(l2)" c2
}

@test "a bridge with the spanning tree protocol" {
	host ip link add br0 type bridge stp_state 1
	add c1 "$(l3)"
	link "$port" .operstate UP
}

@test "the name is taken by something that is not a bridge" {
	host ip link add br0 type veth peer name other
	netns c1
	fails 102 'failed to create bridge "br0": "?br0"? already exists but is not a bridge' ADD bridge c1 <<<"$(l3)"
	same leases '' "$(leases)"
	nothing_left br0 other
}

@test "a link that is not a bridge does not become promiscuous" {
	only_cnibox "does it before it looks"
	host ip link add br0 type veth peer name other
	netns c1
	fails 102 'not a bridge' ADD bridge c1 <<<"$(l2 '{"promiscMode":true}')"
	link br0 '.flags | index("PROMISC") == null' true
}

@test "names that no bridge can have" {
	local n
	netns c1
	for n in '' 1234567890123456; do
		fails 7 'failed to create bridge' ADD bridge c1 <<<"$(l2 '{"bridge":"'"$n"'"}')"
	done
	for n in . .. a/b 'a b' 'a:b' ../../x; do
		fails 7 . ADD bridge c1 <<<"$(l2 '{"bridge":"'"$n"'"}')"
	done
	nothing_left
	add c1 "$(l3 '{"bridge":"123456789012345","isGateway":true}')"
	del c1 "$(l3 '{"bridge":"123456789012345","isGateway":true}')"
	add c1 "$(l3 '{"bridge":"br.5","isGateway":true}')"
	same "accept_ra" 0 "$(host cat /proc/sys/net/ipv6/conf/br.5/accept_ra)"
}

# together N CONFIG: N ADDs for c1..cN at the same moment; their outputs in $T/pI/stdout.
together() {
	local i pids=()
	for ((i = 1; i <= $1; i++)); do
		host test -e "/run/netns/c$i" || netns "c$i"
		mkdir "$T/p$i"
	done
	for ((i = 1; i <= $1; i++)); do
		(
			T=$T/p$i
			wait_for 60 test -e "$T/../go"
			cni ADD bridge "c$i" <<<"$2"
			echo "$status" >"$T/status"
		) 3>&- &
		pids+=($!)
	done
	touch "$T/go"
	wait "${pids[@]}"
	for ((i = 1; i <= $1; i++)); do
		[ "$(<"$T/p$i/status")" = 0 ] || { cat "$T/p$i/stdout" >&2 && return 1; }
	done
}

@test "two first ADDs at the same moment" {
	together 2 "$(l3 '{"isGateway":true}')"
	same ports 2 "$(ports)"
	# The Go plugin's bridge takes its address from the ports until it has a gateway.
	! is_cnibox || same "MACs of the bridge" "$(mac_of br0)" \
		"$(jq -r '.interfaces[0].mac' "$T"/p*/stdout | sort -u)"
	same "addresses of the bridge" 10.1.0.1/24 "$(addrs host br0)"
	same leases '10.1.0.2 10.1.0.3' "$(leases)"
	serve c1 80
	same answer c1 "$(ask c2 tcp "$(addrs c1 eth0 | sed 's,/.*,,')" 80 | cut -d' ' -f1)"
}

@test "ten first ADDs at the same moment, then ten DELs" {
	local i c pids=()
	c=$(dual '{"isDefaultGateway":true}')
	together 10 "$c"
	same ports 10 "$(ports)"
	# The Go plugin's bridge takes its address from the ports until it has a gateway.
	! is_cnibox || same "MACs of the bridge" "$(mac_of br0)" \
		"$(jq -r '.interfaces[0].mac' "$T"/p*/stdout | sort -u)"
	same addresses 10 "$(jq -r '.ips[0].address' "$T"/p*/stdout | sort -u | wc -l)"
	same "addresses of the bridge" "10.1.0.1/24 fd00:1::1/64" "$(addrs host br0)"
	for i in {1..10}; do
		(T=$T/p$i && del "c$i" "$c") 3>&- &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i"
	done
	nothing_left br0
}

# ---- failing ADDs -----------------------------------------------------------------------------

@test "a repeated ADD fails and leaves the live attachment alone" {
	local before
	add c1 "$(l3 '{"isGateway":true}')"
	everything() {
		host ip -j link show master br0
		inside c1 ip -j link
		addrs host br0
		addrs c1 eth0
		inside c1 ip -j route
		leases
	}
	before=$(everything)
	fails 102 'container veth name .*eth0.* already exists' ADD bridge c1 <<<"$(l3 '{"isGateway":true}')"
	same state "$before" "$(everything)"
	serve host 80
	same answer "host 10.1.0.2" "$(ask c1 tcp 10.1.0.1 80)"
}

@test "an interface of another kind in the container's way" {
	netns c1
	inside c1 ip link add eth0 type veth peer name x0
	fails 102 'already exists' ADD bridge c1 <<<"$(l3)"
	inside c1 ip link show eth0
	same leases '' "$(leases)"
}

@test "a failing ADD leaves nothing: IPAM refuses" {
	only_cnibox "leaves the bridge and the veth pair"
	local c
	c=$(fake '{}' '{"isGateway":true,"ipMasq":true}')
	refuse ADD
	netns c1
	fails 55 'no more; really' ADD bridge c1 <<<"$c"
	nothing_left
	inside c1 sh -c '! ip link show eth0'
}

@test "IPAM's refusal is passed through" {
	local c
	c=$(fake '{}')
	refuse ADD
	netns c1
	fails any 'no more; really' ADD bridge c1 <<<"$c"
	is .code 55
}

@test "a failing ADD leaves nothing: the range is exhausted" {
	local c
	c=$(l2 '{"ipam":{"type":"host-local","subnet":"10.1.0.0/30"}}')
	add c1 "$c"
	netns c2
	fails any 'no IP addresses available in range set: 10.1.0.1-10.1.0.2' ADD bridge c2 <<<"$c"
	same leases 10.1.0.2 "$(leases)"
	! is_cnibox || same ports 1 "$(ports)"
	add c1 "$c" || :
	del c1 "$c"
	ok DEL bridge c2 <<<"$c"
	nothing_left br0
}

@test "a failing ADD leaves nothing: IPAM gives no address" {
	local c
	c=$(fake '{"routes":[]}')
	netns c1
	fails any 'IPAM plugin returned missing IP config' ADD bridge c1 <<<"$c"
	same calls $'ADD c1 eth0\nDEL c1 eth0' "$(<"$T/fake.log")"
	! is_cnibox || nothing_left
}

@test "a failing ADD leaves nothing: IPAM is not found, or its name is a path" {
	netns c1
	netns c2
	fails any 'failed to find plugin "nowhere" in path' ADD bridge c1 <<<"$(l2 '{"ipam":{"type":"nowhere"}}')"
	fails any 'invalid plugin name' ADD bridge c2 <<<"$(l2 '{"ipam":{"type":"../fake"}}')"
	! is_cnibox || nothing_left
}

@test "a failing ADD leaves nothing: IPAM says nonsense, or nothing" {
	local c
	c=$(fake '{}')
	netns c1
	netns c2
	netns c3
	echo 'nonsense' >"$T/result"
	fails any . ADD bridge c1 <<<"$c"
	printf '' >"$T/refuse.ADD"
	fails any 'netplugin failed with no error message: exit status 1' ADD bridge c2 <<<"$c"
	printf '#!/bin/sh\nkill -SEGV $$\n' >"$T/bin/fake"
	fails any . ADD bridge c3 <<<"$c"
	! is_cnibox || nothing_left
}

@test "a failing ADD leaves nothing: an address of IPAM's that the kernel refuses" {
	local c
	c=$(fake '{"ips":[{"address":"10.1.0.9/24"},{"address":"10.1.0.9/24"}]}' '{"isGateway":true}')
	netns c1
	fails 100 'failed to add IP addr .*10.1.0.9.* to "eth0"' ADD bridge c1 <<<"$c"
	same calls $'ADD c1 eth0\nDEL c1 eth0' "$(<"$T/fake.log")"
	! is_cnibox || nothing_left
}

@test "a failing ADD leaves nothing: the gateway's address is in conflict" {
	only_cnibox "leaves the veth pair and the address"
	taken_bridge
	host ip addr add 10.1.0.9/24 dev br0
	netns c1
	fails 102 'already has an IP address' ADD bridge c1 <<<"$(dual '{"isGateway":true,"ipMasq":true}')"
	nothing_left br0
	same "addresses of the bridge" 10.1.0.9/24 "$(addrs host br0)"
	inside c1 sh -c '! ip link show eth0'
}

@test "a failing ADD leaves nothing: the namespace is missing, a file or of another kind" {
	host touch /run/netns/file
	NETNS=/run/netns/none fails 8 'failed to open netns' ADD bridge c1 <<<"$(l3)"
	NETNS=/run/netns/file fails 8 'failed to open netns .*unknown FS magic' ADD bridge c1 <<<"$(l3)"
	NETNS=/proc/self/ns/uts fails 8 . ADD bridge c1 <<<"$(l3)"
	NETNS=/run/netns fails 8 . ADD bridge c1 <<<"$(l3)"
	NETNS='' fails 4 'CNI_NETNS' ADD bridge c1 <<<"$(l3)"
	same leases '' "$(leases)"
	! is_cnibox || nothing_left
}

@test "a failing ADD leaves nothing: forwarding cannot be enabled" {
	netns c1
	host sh -c 'mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys'
	fails 100 'forward' ADD bridge c1 <<<"$(l3 '{"isGateway":true}')"
	same leases '' "$(leases)"
	! is_cnibox || nothing_left
}

@test "a read-only /proc/sys does not matter where forwarding is on" {
	netns c1
	host sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward
		mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys'
	add c1 "$(l3 '{"isGateway":true}')"
}

@test "a failing ADD leaves nothing: the store cannot be written" {
	netns c1
	host sh -c 'mount -o remount,ro /var/lib/cni'
	fails any . ADD bridge c1 <<<"$(l3)"
	! is_cnibox || nothing_left
}

@test "a failing ADD leaves nothing: the result cannot be printed" {
	only_cnibox "leaves everything"
	netns c1
	CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 \
		host "$CNI_PLUGIN_DIR/bridge" <<<"$(dual '{"isDefaultGateway":true,"ipMasq":true}')" \
		>/dev/full 2>"$T/err" && false
	[ -s "$T/err" ]
	nothing_left
	inside c1 sh -c '! ip link show eth0'
}

@test "a failing ADD leaves alone what others have on the bridge it made" {
	only_cnibox "leaves everything"
	local c
	c=$(fake '{}')
	# While IPAM answers, somebody else's port appears.
	cat >"$T/bin/fake" <<-END
		#!/bin/sh
		[ "\$CNI_COMMAND" = ADD ] || exit 0
		ip link add p0 type veth peer name p1 && ip link set p0 master br0
		echo '{"code":55,"msg":"no more"}'
		exit 1
	END
	netns c1
	fails 55 'no more' ADD bridge c1 <<<"$c"
	nothing_left br0 p0 p1
	link p0 .master br0
}

@test "types that do not fit are refused before anything is made" {
	local k
	netns c1
	for k in '"bridge":5' '"isGateway":"yes"' '"mtu":"1500"' '"mtu":1.5' '"hairpinMode":1' '"vlan":"5"' \
		'"ipam":[]' '"ipam":{"type":5}' '"dns":[]' '"dns":{"nameservers":"x"}' '"args":5' \
		'"runtimeConfig":[]' '"runtimeConfig":{"mac":5}'; do
		fails 7 . ADD bridge c1 <<<"$(l2 "{$k}")"
	done
	if is_cnibox; then
		for k in '"vlanTrunk":5' '"vlanTrunk":[5]' '"vlanTrunk":[null]' '"portIsolation":0' \
			'"ipMasqBackend":1'; do
			fails 7 . ADD bridge c1 <<<"$(l2 "{$k}")"
		done
	fi
	nothing_left
}

@test "vlan: IDs out of range are refused" {
	local v
	netns c1
	for v in -1 4095 5000 99999999999; do
		fails 7 . ADD bridge c1 <<<"$(l2 '{"vlan":'$v'}')"
	done
	fails 7 'invalid VLAN ID 4095 \(must be between 0 and 409[45]' ADD bridge c1 <<<"$(l2 '{"vlan":4095}')"
	nothing_left
}

@test "vlanTrunk: what is no range is refused" {
	only_cnibox "newer than release 1.1.1"
	netns c1
	fails 7 'incorrect trunk minID parameter' ADD bridge c1 <<<"$(l2 '{"vlanTrunk":[{"minID":0,"maxID":5}]}')"
	fails 7 'incorrect trunk maxID parameter' ADD bridge c1 <<<"$(l2 '{"vlanTrunk":[{"minID":1,"maxID":4095}]}')"
	fails 7 'incorrect trunk id parameter' ADD bridge c1 <<<"$(l2 '{"vlanTrunk":[{"id":4095}]}')"
	fails 7 'minID is greater than maxID' ADD bridge c1 <<<"$(l2 '{"vlanTrunk":[{"minID":9,"maxID":5}]}')"
	fails 7 'configured simultaneously, maxID is missing' ADD bridge c1 <<<"$(l2 '{"vlanTrunk":[{"minID":9}]}')"
	fails 7 'configured simultaneously, minID is missing' ADD bridge c1 <<<"$(l2 '{"vlanTrunk":[{"maxID":9}]}')"
	nothing_left
}

@test "vlan: a VLAN interface's name that is too long is refused at once" {
	only_cnibox "fails late and leaves everything"
	netns c1
	fails 7 'too long' ADD bridge c1 <<<"$(l3 '{"bridge":"bridge-of-mine","vlan":100,"isGateway":true}')"
	nothing_left
}

@test "an unknown masquerading backend is refused at once" {
	only_cnibox "newer than release 1.1.1"
	netns c1
	fails 7 'unknown ipmasq backend "pf"' ADD bridge c1 <<<"$(l3 '{"ipMasq":true,"ipMasqBackend":"pf"}')"
	nothing_left
	add c1 "$(l3 '{"ipMasqBackend":"pf"}')"
}

# ---- owner marks ------------------------------------------------------------------------------

@test "the host's end carries its owner: alternative name and alias" {
	only_cnibox "leaves no mark"
	local hash
	add c1 "$(l3)"
	hash=$(printf 'net1\nc1\neth0' | sha512sum | cut -c1-32)
	link "$port" '.altnames' "[\"cnibox-$hash\"]"
	link "$port" '.ifalias' "cnibox $(printf net1 | sha512sum | cut -c1-16) $hash net1 c1 eth0"
	same "the name" "veth${hash:0:8}" "$port"
	link br0 .ifalias 'cnibox bridge'
}

@test "what a killed ADD left behind is replaced" {
	only_cnibox "finds nothing of its own again"
	add c1 "$(l2)"
	inside c1 ip link set eth0 down
	inside c1 ip link set eth0 name old0
	add c1 "$(l2)"
	same ports 1 "$(ports)"
	inside_is c1 '[.[].ifname]' '["lo","eth0"]' ip -j link
	del c1 "$(l2)"
	nothing_left br0
}

@test "DEL after an ADD that was killed, and ADD again" {
	only_cnibox "keeps the address"
	local c pid
	cat >"$T/bin/slow" <<-END
		#!/bin/sh
		cat >/dev/null
		if [ "\$CNI_COMMAND" = ADD ]; then echo \$PPID >$T/parent; exec sleep 100; fi
		echo "\$CNI_COMMAND" >>$T/slow.log
	END
	chmod +x "$T/bin/slow"
	c=$(l2 '{"isGateway":true,"ipMasq":true,"macspoofchk":true,"ipam":{"type":"slow"}}')
	netns c1
	(T=$T/bin && cni ADD bridge c1 <<<"$c") 3>&- &
	wait_for 60 test -s "$T/parent"
	same ports 1 "$(ports)"
	kill -KILL "$(<"$T/parent")"
	wait $! || :
	NETNS='' ok DEL bridge c1 <<<"$c"
	same "IPAM" DEL "$(<"$T/slow.log")"
	nothing_left br0
	add c1 "$(l3 '{"isGateway":true,"ipMasq":true,"macspoofchk":true}')"
}

@test "a foreign link that has our port's name is not touched" {
	only_cnibox "names are random"
	local name
	name=veth$(printf 'net1\nc1\neth0' | sha512sum | cut -c1-8)
	host ip link add "$name" type veth peer name other
	host ip link set "$name" alias mine
	add c1 "$(l2)"
	link "$name" '[.ifalias, .altnames, .master]' '["mine",null,null]'
	[ "$port" != "$name" ]
	del c1 "$(l2)"
	nothing_left br0 "$name" other
}

@test "the plugin's own namespace is refused before anything happens" {
	only_cnibox "acts first: DEL deletes the host's interface"
	local verb before
	host ln -s /proc/self/ns/net /run/netns/self
	host ip link add eth0 type veth peer name eth1
	before=$(host ip -j link)
	for verb in ADD DEL; do
		NETNS=/run/netns/self fails 8 'should not be the same' "$verb" bridge c1 <<<"$(l3)"
		same "links after $verb" "$before" "$(host ip -j link)"
	done
	same leases '' "$(leases)"
}

@test "CNI_NETNS_OVERRIDE lets the own namespace pass" {
	only_cnibox "deletes and rewires the host's interfaces"
	host ln -s /proc/self/ns/net /run/netns/self
	NETNS=/run/netns/self CNI_NETNS_OVERRIDE=TRUE ok ADD bridge c1 <<<"$(l3)"
	host ip link show eth0
	NETNS=/run/netns/self CNI_NETNS_OVERRIDE=1 ok DEL bridge c1 <<<"$(l3)"
	nothing_left br0
}

# ---- announcements ----------------------------------------------------------------------------

@test "neighbours hear of the addresses: gratuitous ARP and unsolicited NA" {
	only_cnibox "announces before the port forwards"
	local n
	add c1 "$(l2)"
	spawn c1 sh -c "exec tcpdump -lnep -i eth0 'arp or (icmp6 and ip6[40] == 136)' >$T/heard 2>$T/heard.err"
	wait_for 60 grep -q 'listening on' "$T/heard.err"
	for n in 2 3 4; do
		add "c$n" "$(dual '{"runtimeConfig":{"mac":"02:00:00:00:00:0'$n'"}}')"
		wait_for 60 grep -Eq "^.* 02:00:00:00:00:0$n > ff:ff:ff:ff:ff:ff.* (who-has 10.1.0.$n .*tell 10.1.0.$n|Reply 10.1.0.$n is-at)" "$T/heard"
		wait_for 60 grep -Eq "02:00:00:00:00:0$n > .* fd00:1::$n > ff02::1: .*neighbor advertisement" "$T/heard"
	done
}

@test "an address that moves to another container is reached there at once" {
	only_cnibox "announces before the port forwards"
	local c
	c=$(l3)
	add c1 "$c"
	add c2 "$(fake '{"ips":[{"address":"10.1.0.9/24"}]}')"
	serve c2 80
	same "before" "c2 10.1.0.2" "$(ask c1 tcp 10.1.0.9 80)"
	del c2 "$(fake '{"ips":[{"address":"10.1.0.9/24"}]}')"
	add c3 "$(fake '{"ips":[{"address":"10.1.0.9/24"}]}')"
	inside_is c1 '[.[] | select(.dst == "10.1.0.9") | .lladdr]' \
		"$(jq -c '[.interfaces[2].mac]' <<<"$output")" ip -j neigh || :
	serve c3 80
	same "after" "c3 10.1.0.2" "$(ask c1 tcp 10.1.0.9 80)"
}

# ---- DEL --------------------------------------------------------------------------------------

@test "DEL with neither namespace nor prevResult" {
	add c1 "$(l3 '{"isGateway":true}')"
	NETNS='' ok DEL bridge c1 <<<"$(l3 '{"isGateway":true}')"
	same output '' "$output"
	same leases '' "$(leases)"
	! is_cnibox || { nothing_left br0 && inside c1 sh -c '! ip link show eth0'; }
}

@test "DEL twice, and of what was never there" {
	add c1 "$(l3)"
	del c1 "$(l3)"
	del c1 "$(l3)"
	netns c2
	del c2 "$(l3)"
	NETNS='' ok DEL bridge c3 <<<"$(l3)"
	nothing_left br0
	same output '' "$output"
}

@test "DEL when the namespace is gone" {
	add c1 "$(l3)"
	host ip netns del c1
	del c1 "$(l3)"
	nothing_left br0
}

@test "DEL when the namespace's path is a file that was left behind" {
	only_cnibox "fails and keeps the address"
	add c1 "$(l3)"
	host umount /run/netns/c1
	host test -f /run/netns/c1
	del c1 "$(l3)"
	nothing_left br0
}

@test "DEL when the namespace is not to be entered: the rest is done" {
	only_cnibox "keeps the address"
	add c1 "$(l3)"
	NETNS=/proc/self/ns/uts ok DEL bridge c1 <<<"$(l3)"
	nothing_left br0
}

@test "DEL when the interface is gone from the container" {
	add c1 "$(l3)"
	inside c1 ip link del eth0
	del c1 "$(l3)"
	nothing_left br0
}

@test "DEL when the interface was renamed or moved away" {
	only_cnibox "does not find it"
	add c1 "$(l3)"
	netns c9
	inside c1 ip link set eth0 down
	inside c1 ip link set eth0 name moved
	inside c1 ip link set moved netns "$(host readlink -f /run/netns/c9)" 2>/dev/null || :
	del c1 "$(l3)"
	nothing_left br0
}

@test "DEL when the bridge is gone" {
	add c1 "$(l3)"
	host ip link del br0
	del c1 "$(l3)"
	nothing_left
}

@test "DEL reports that IPAM failed, after everything else was done" {
	local c
	c=$(fake '{"ips":[{"address":"10.1.0.9/24"}]}')
	add c1 "$c"
	refuse DEL
	fails any 'no more' DEL bridge c1 <<<"$c"
	inside c1 sh -c '! ip link show eth0'
	nothing_left br0
	rm "$T/refuse.DEL"
	del c1 "$c"
}

@test "DEL leaves other attachments and other networks alone" {
	local other
	other=$(l3 '{"name":"net2","bridge":"br1","ipam":{"subnet":"10.2.0.0/24"}}')
	add c1 "$(l3)"
	add c2 "$(l3)"
	add c1 "$other" net2
	del c1 "$(l3)"
	inside c1 ip link show net2
	inside c2 ip link show eth0
	same ports "1 1" "$(ports br0) $(ports br1)"
}

@test "DEL does not take an interface that another network made" {
	only_cnibox "deletes whatever has the name"
	add c1 "$(l3)"
	# The ADD of a second network failed because of the name; its DEL follows.
	fails 102 'already exists' ADD bridge c1 <<<"$(l3 '{"name":"net2"}')"
	del c1 "$(l3 '{"name":"net2"}')"
	inside c1 ip link show eth0
	same ports 1 "$(ports)"
	del c1 "$(l3)"
	nothing_left br0
}

@test "DEL does not take an interface that is no veth" {
	only_cnibox "deletes whatever has the name"
	netns c1
	inside c1 ip link add eth0 type bridge
	del c1 "$(l3)"
	inside c1 ip link show eth0
}

@test "DEL of what the Go plugin made" {
	only_cnibox "is about both"
	need_go
	local c
	c=$(dual '{"isDefaultGateway":true}')
	netns c1
	CNI_PATH=$GO_DIR ok ADD "$GO_DIR/bridge" c1 <<<"$c"
	del c1 "$c"
	nothing_left br0
	inside c1 sh -c '! ip link show eth0'
}

@test "DEL by the Go plugin of what we made" {
	only_cnibox "is about both"
	need_go
	local c
	c=$(dual '{"isDefaultGateway":true}')
	add c1 "$c"
	CNI_PATH=$GO_DIR ok DEL "$GO_DIR/bridge" c1 <<<"$c"
	nothing_left br0
}

@test "both implementations side by side on one bridge" {
	only_cnibox "is about both"
	need_go
	local c
	c=$(l3 '{"isDefaultGateway":true}')
	netns c1
	CNI_PATH=$GO_DIR ok ADD "$GO_DIR/bridge" c1 <<<"$c"
	add c2 "$c"
	is '.ips[0].address' 10.1.0.3/24
	netns c3
	CNI_PATH=$GO_DIR ok ADD "$GO_DIR/bridge" c3 <<<"$c"
	is '.ips[0].address' 10.1.0.4/24
	serve c1 80
	serve host 80
	same answer "c1 10.1.0.3" "$(ask c2 tcp 10.1.0.2 80)"
	same answer "c1 10.1.0.4" "$(ask c3 tcp 10.1.0.2 80)"
	same answer "host 10.1.0.4" "$(ask c3 tcp 10.1.0.1 80)"
	check "$c" c2
	printf '%s' "$output" >/dev/null
}

@test "CHECK of what the Go plugin made" {
	only_cnibox "is about both"
	need_go
	local c
	c=$(l3 '{"isDefaultGateway":true}')
	netns c1
	CNI_PATH=$GO_DIR ok ADD "$GO_DIR/bridge" c1 <<<"$c"
	printf '%s' "$output" >"$T/result-c1-eth0"
	check "$c" c1
}

@test "CHECK by the Go plugin of what we made" {
	only_cnibox "is about both"
	need_go
	local c
	c=$(l3 '{"isDefaultGateway":true}')
	add c1 "$c"
	CNI_PATH=$GO_DIR ok CHECK "$GO_DIR/bridge" c1 <<<"$(with_prev "$c" c1)"
}

# ---- CHECK ------------------------------------------------------------------------------------

@test "CHECK is content with what ADD made" {
	local c
	c=$(l3 '{"isDefaultGateway":true,"hairpinMode":true,"mtu":1400}')
	add c1 "$c"
	check "$c" c1
	same output '' "$output"
	c=$(dual '{"isDefaultGateway":true,"bridge":"br1","name":"net2"}')
	add c2 "$c"
	check "$c" c2
}

@test "CHECK of layer 2" {
	only_cnibox "asks IPAM although there is none"
	add c1 "$(l2)"
	check "$(l2)" c1
}

@test "CHECK is passed to IPAM, and its refusal on" {
	local c
	c=$(fake '{"ips":[{"address":"10.1.0.9/24"}]}')
	add c1 "$c"
	check "$c" c1
	same calls $'ADD c1 eth0\nCHECK c1 eth0' "$(<"$T/fake.log")"
	refuse CHECK
	fails any 'no more; really' CHECK bridge c1 <<<"$(with_prev "$c" c1)"
}

@test "CHECK needs prevResult and a spec version that has it" {
	add c1 "$(l3)"
	fails 7 'Required prevResult missing' CHECK bridge c1 <<<"$(l3)"
	fails 1 'config version does not allow CHECK' CHECK bridge c1 <<<"$(VERSION=0.3.1 l3)"
}

@test "CHECK sees that the container's interface is gone, another or of another kind" {
	local c
	c=$(l3 '{"isGateway":true}')
	add c1 "$c"
	mismatch "Mac" "$c" c1 '.interfaces[2].mac = "02:00:00:00:00:99"'
	mismatch "Sandbox in prevResult .*doesn't match configured netns" "$c" c1 '.interfaces[2].sandbox = "/other"'
	mismatch . "$c" c1 '.interfaces[2].name = "eth7"'
	inside c1 ip link del eth0
	mismatch 'eth0.* not found|eth0' "$c" c1
	inside c1 ip link add eth0 type bridge
	mismatch . "$c" c1
}

@test "CHECK sees that the bridge is gone, another or not in the result" {
	add c1 "$(l3)"
	mismatch . "$(l3)" c1 '.interfaces[0].mac = "02:00:00:00:00:99"'
	mismatch . "$(l3)" c1 '.interfaces[0].name = "br7"'
	mismatch . "$(l3)" c1 'del(.interfaces[0]) | .ips[0].interface = 1'
	host ip link del br0
	mismatch 'br0' "$(l3)" c1
	host ip link add br0 type veth peer name other
	mismatch . "$(l3)" c1
}

@test "CHECK sees that the port left the bridge, or is not the one of the result" {
	local c
	c=$(l3 '{"isGateway":true}')
	add c1 "$c"
	mismatch . "$c" c1 '.interfaces[1].name = "veth77777777"'
	mismatch . "$c" c1 '.interfaces[1].mac = "02:00:00:00:00:99"'
	host ip link set "$port" nomaster
	mismatch 'CNI veth created for bridge br0 was not found' "$c" c1
	host ip link add br9 type bridge
	host ip link set "$port" master br9
	mismatch 'CNI veth created for bridge br0 was not found' "$c" c1
}

@test "CHECK sees port settings that differ" {
	only_cnibox "does not look at them"
	add c1 "$(l3)"
	host bridge link set dev "$port" hairpin on
	mismatch 'hairpin' "$(l3)" c1
	check "$(l3 '{"hairpinMode":true}')" c1
	host bridge link set dev "$port" hairpin off
	host bridge link set dev "$port" isolated on
	mismatch 'isolation' "$(l3)" c1
}

@test "CHECK sees that an address is gone or has another length" {
	add c1 "$(l3)"
	inside c1 ip addr add 10.1.0.77/24 dev eth0
	check "$(l3)" c1
	inside c1 ip addr del 10.1.0.2/24 dev eth0
	inside c1 ip addr add 10.1.0.2/16 dev eth0
	mismatch 'Failed to match addr' "$(l3)" c1
}

@test "CHECK sees that a route is gone" {
	local c
	c=$(l3 '{"isDefaultGateway":true,"ipam":{"routes":[{"dst":"10.7.0.0/16","gw":"10.1.0.1"}]}}')
	add c1 "$c"
	check "$c" c1
	inside c1 ip route replace default via 10.1.0.50
	check "$c" c1
	inside c1 ip route del 10.7.0.0/16
	mismatch 'Expected Route .*10.7.0.0(/16| Mask:ffff0000).* not found in routing table' "$c" c1
	inside c1 ip route add 10.7.0.0/16 via 10.1.0.1
	inside c1 ip route del default
	mismatch 'not found in routing table' "$c" c1
}

@test "CHECK: /32 and /128 addresses are fine" {
	only_cnibox "wants a route to the network"
	local c
	c=$(fake '{"ips":[{"address":"10.1.0.9/32"},{"address":"fd00:1::9/128"}]}')
	add c1 "$c"
	check "$c" c1
}

@test "CHECK sees that promiscMode is gone, and no sniffer disturbs it" {
	local c
	c=$(l3 '{"promiscMode":true}')
	add c1 "$c"
	check "$c" c1
	host ip link set br0 promisc off
	mismatch . "$c" c1
	if is_cnibox; then
		host ip link set br0 promisc on
		check "$(l3)" c1
	fi
}

@test "CHECK: the MAC of a bridge that is not ours may change" {
	only_cnibox "compares it, though it follows the ports"
	taken_bridge
	add c1 "$(l3)"
	host ip link add p0 address 00:00:00:00:00:01 type veth peer name p1
	host ip link set p0 master br0
	check "$(l3)" c1
}

# ---- GC and STATUS ----------------------------------------------------------------------------

# valid CONFIG ID...: the GC config when these containers' eth0 are valid.
valid() {
	jq -c --args '.["cni.dev/valid-attachments"] = [$ARGS.positional[] | {containerID: ., ifname: "eth0"}]
		' "${@:2}" <<<"$1"
}

@test "GC removes exactly what is stale, of its own network" {
	only_cnibox "has no GC"
	local one two
	VERSION=1.1.0
	one=$(l3 '{"isGateway":true,"ipMasq":true}')
	two=$(l3 '{"name":"net2","bridge":"br1","ipam":{"subnet":"10.2.0.0/24"}}')
	for c in c1 c2 c3; do
		add $c "$one"
		add $c "$two" net2
	done
	add c1 "$one" other0
	ok GC bridge '' <<<"$(valid "$one" c1)"
	same output '' "$output"
	same ports "1 3" "$(ports br0) $(ports br1)"
	same leases "10.1.0.2" "$(leases)"
	same "leases of net2" "10.2.0.2 10.2.0.3 10.2.0.4" \
		"$(host sh -c 'ls /var/lib/cni/networks/net2 | grep ^10' | xargs)"
	inside c1 ip link show eth0
	inside c1 sh -c '! ip link show other0'
	for c in c2 c3; do
		inside $c sh -c '! ip link show eth0'
		inside $c ip link show net2
	done
	serve host 80
	same answer "host 10.1.0.2" "$(ask c1 tcp 10.1.0.1 80)"
	check "$one" c1
	ok GC bridge '' <<<"$(valid "$one" c1)"
}

@test "GC with nothing valid takes the bridge that we made along, and no other" {
	only_cnibox "has no GC"
	local c
	VERSION=1.1.0
	c=$(l3 '{"isGateway":true}')
	add c1 "$c"
	ok GC bridge '' <<<"$(valid "$c")"
	nothing_left
	taken_bridge
	add c1 "$c"
	ok GC bridge '' <<<"$(valid "$c")"
	nothing_left br0
	host ip link del br0
	add c1 "$c"
	add c2 "$(l3 '{"name":"net2"}')"
	ok GC bridge '' <<<"$(valid "$c")"
	same ports 1 "$(ports)"
	inside c2 ip link show eth0
}

@test "GC when there is nothing at all" {
	only_cnibox "has no GC"
	VERSION=1.1.0
	ok GC bridge '' <<<"$(valid "$(l3)" c1)"
	ok GC bridge '' <<<"$(valid "$(l2)")"
	fails 1 'config version does not allow GC' GC bridge '' <<<"$(VERSION=1.0.0 l3)"
	nothing_left
}

@test "GC goes on when IPAM fails, and reports it; many at once" {
	only_cnibox "has no GC"
	local c i
	VERSION=1.1.0
	for i in {1..12}; do
		c=$(fake '{"ips":[{"address":"10.1.0.'$i'/24"}]}')
		add c$i "$c"
	done
	refuse GC
	fails any 'no more' GC bridge '' <<<"$(valid "$c" c5 c7)"
	same ports 2 "$(ports)"
	inside c5 ip link show eth0
	inside c7 ip link show eth0
}

@test "STATUS: IPAM's answer, or success without IPAM" {
	only_cnibox "newer than release 1.1.1"
	local c
	VERSION=1.1.0
	ok STATUS bridge '' <<<"$(l2)"
	ok STATUS bridge '' <<<"$(l3)"
	c=$(fake '{}')
	ok STATUS bridge '' <<<"$c"
	same calls 'STATUS  ' "$(<"$T/fake.log")"
	printf '%s' '{"code":50,"msg":"not yet"}' >"$T/refuse.STATUS"
	fails 50 'not yet' STATUS bridge '' <<<"$c"
	fails any 'failed to find plugin' STATUS bridge '' <<<"$(l2 '{"ipam":{"type":"nowhere"}}')"
	fails 1 'config version does not allow STATUS' STATUS bridge '' <<<"$(VERSION=1.0.0 l2)"
	nothing_left
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
		is '[.interfaces[] | keys]' '[["mac","name"],["mac","name"],["mac","name","sandbox"]]'
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
