# bridge: settings of the port and the bridge, MAC addresses, routes and DNS.

load bridge

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
