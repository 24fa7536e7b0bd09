# macvlan: a link with a MAC address of its own on a link of the node. Modes with packets, where the
# master is found, keys, what fails and what is left then, CHECK, DEL, GC, and both implementations on
# one attachment.

load helpers
load macvlan

setup() {
	need_applet macvlan host-local
	sandbox
	mkdir "$T/bin"
	export CNI_PATH=$CNI_PLUGIN_DIR:$T/bin
	host ip link add probe type veth peer name m0
	host ip link add link m0 name v type macvlan 2>/dev/null || skip "this kernel has no macvlan"
	host ip link del probe
	make_master
}
teardown() { sandbox_end; }

# ---- what there is ----------------------------------------------------------------------------

@test "the link, its address, route and the result" {
	add c1 "$(l3)"
	is '.interfaces | length' 1
	is '.interfaces[0] | [.name, .sandbox]' '["eth0","/run/netns/c1"]'
	is '.ips' '[{"interface":0,"address":"10.1.0.2/24","gateway":"10.1.0.1"}]'
	is '.routes' '[{"dst":"0.0.0.0/0","gw":"10.1.0.254"}]'
	link_in c1 '[.linkinfo.info_kind, .linkinfo.info_data.mode, .mtu]' '["macvlan","bridge",1500]'
	link_in c1 .address "$(jq '.interfaces[0].mac' <<<"$output")"
	link_in c1 '.flags | contains(["UP","LOWER_UP"])' true
	same address 10.1.0.2/24 "$(addrs c1)"
	inside c1 ip route | grep -q '^default via 10.1.0.254 dev eth0'
	check "$(l3)" c1
	del c1 "$(l3)"
	nothing_left m0
	same leases '' "$(leases)"
	no_link c1
}

@test "without IPAM: a link that is up" {
	local c
	c=$(l3 | jq -c 'del(.ipam)')
	add c1 "$c"
	is '.ips // []' '[]'
	link_in c1 '.flags | contains(["UP","LOWER_UP"])' true
	same address '' "$(addrs c1)"
	check "$c" c1
	del c1 "$c"
	no_link c1
}

@test "the result in every version" {
	local v
	for v in 0.3.0 0.3.1 0.4.0 1.0.0 1.1.0; do
		[ $v != 1.1.0 ] || is_cnibox || continue
		VERSION=$v add "c$v" "$(VERSION=$v l3)"
		is .cniVersion "$v"
		is '.ips[0].interface' 0
		is '.interfaces | length' 1
	done
	VERSION=0.2.0 add old "$(VERSION=0.2.0 l3)"
	is '.ip4.gateway' 10.1.0.1
}

@test "without IPAM in a version that cannot say it: refused, and nothing is left" {
	netns c1
	fails 7 'no valid IP addresses' ADD macvlan c1 <<<"$(l3 | jq -c 'del(.ipam) | .cniVersion = "0.2.0"')"
	only_cnibox "leaves the link"
	no_link c1
}

# ---- packets ----------------------------------------------------------------------------------

@test "bridge: containers reach each other and the far side, and both them" {
	add c1 "$(dual)"
	add c2 "$(dual)"
	wait_for 5 settled c1
	wait_for 5 settled c2
	serve c1 80
	serve c1 81 -6
	serve far 80
	serve far 81 -6
	same "c2 to c1" "c1 10.1.0.3" "$(ask c2 tcp 10.1.0.2 80)"
	same "c2 to c1, IPv6" "c1 fd00:1::3" "$(ask c2 tcp fd00:1::2 81)"
	same "c1 to the far side" "far 10.1.0.2" "$(ask c1 tcp 10.1.0.254 80)"
	same "c1 to the far side, IPv6" "far fd00:1::2" "$(ask c1 tcp fd00:1::fe 81)"
	same "the far side to c1" "c1 10.1.0.254" "$(ask far tcp 10.1.0.2 80)"
	# The node itself is not in their network.
	host ip addr add 10.1.0.253/24 dev m0
	serve host 80
	same "the node" "" "$(knock c1 tcp 10.1.0.253 80)"
}

@test "vepa: containers reach each other by way of the switch, if that sends frames back" {
	add c1 "$(l3 '{"mode":"vepa"}')"
	add c2 "$(l3 '{"mode":"vepa"}')"
	link_in c1 .linkinfo.info_data.mode vepa
	serve c1 80
	serve far 80
	same "c2 to the far side" "far 10.1.0.3" "$(ask c2 tcp 10.1.0.254 80)"
	same "c2 to c1, by a switch that does not" "" "$(knock c2 tcp 10.1.0.2 80)"
	inside far ip link set eth0 type bridge_slave hairpin on
	# The last attempt may still be waiting for an answer to who has the address.
	inside c2 ip neigh flush dev eth0
	reached() { [ "$(knock c2 tcp 10.1.0.2 80)" = "c1 10.1.0.3" ]; }
	wait_for 30 reached
	check "$(l3 '{"mode":"vepa"}')" c1
}

@test "private: containers do not reach each other, even where the switch would" {
	add c1 "$(l3 '{"mode":"private"}')"
	add c2 "$(l3 '{"mode":"private"}')"
	link_in c1 .linkinfo.info_data.mode private
	inside far ip link set eth0 type bridge_slave hairpin on
	serve c1 80
	serve far 80
	same "c2 to the far side" "far 10.1.0.3" "$(ask c2 tcp 10.1.0.254 80)"
	same "the far side to c1" "c1 10.1.0.254" "$(ask far tcp 10.1.0.2 80)"
	same "c2 to c1" "" "$(knock c2 tcp 10.1.0.2 80)"
	check "$(l3 '{"mode":"private"}')" c1
}

@test "passthru: the container has the master's MAC address and its traffic; one per master" {
	local c mac
	c=$(l3 '{"mode":"passthru"}')
	mac=$(host cat /sys/class/net/m0/address)
	add c1 "$c"
	link_in c1 .linkinfo.info_data.mode passthru
	is '.interfaces[0].mac' "$mac"
	serve c1 80
	serve far 80
	same "c1 to the far side" "far 10.1.0.2" "$(ask c1 tcp 10.1.0.254 80)"
	same "the far side to c1" "c1 10.1.0.254" "$(ask far tcp 10.1.0.2 80)"
	check "$c" c1
	netns c2
	fails 100 'failed to create macvlan' ADD macvlan c2 <<<"$c"
	no_link c2
	! is_cnibox || [[ $output == *'net1 c1 eth0'* ]]
	del c1 "$c"
	add c3 "$c"
}

@test "passthru with a MAC address: the master takes it, and gives it back" {
	only_cnibox "the MAC address is ignored"
	local c mac
	c=$(l3 '{"mode":"passthru","mac":"02:00:00:00:00:55"}')
	mac=$(host cat /sys/class/net/m0/address)
	add c1 "$c"
	is '.interfaces[0].mac' 02:00:00:00:00:55
	same master 02:00:00:00:00:55 "$(host cat /sys/class/net/m0/address)"
	serve far 80
	same "c1 to the far side" "far 10.1.0.2" "$(ask c1 tcp 10.1.0.254 80)"
	check "$c" c1
	del c1 "$c"
	same master "$mac" "$(host cat /sys/class/net/m0/address)"
}

@test "an address that was another's before is announced, IPv4 and IPv6" {
	local c1 c2
	add c1 "$(dual)"
	wait_for 5 settled c1
	serve far 80
	serve far 81 -6
	ask c1 tcp 10.1.0.254 80
	ask c1 tcp fd00:1::fe 81
	known_as() { inside far ip neigh show "$1" | grep -q "lladdr $2 "; }
	wait_for 5 known_as 10.1.0.2 "$(mac_of c1)"
	wait_for 5 known_as fd00:1::2 "$(mac_of c1)"
	del c1 "$(dual)"
	host rm -rf /var/lib/cni/networks/net1
	add c2 "$(dual)"
	is '[.ips[].address]' '["10.1.0.2/24","fd00:1::2/64"]'
	wait_for 5 known_as 10.1.0.2 "$(mac_of c2)"
	only_cnibox "announces IPv4 only"
	wait_for 5 known_as fd00:1::2 "$(mac_of c2)"
}

@test "IPv6 is usable at once; with enabledad a duplicate fails ADD" {
	only_cnibox "tentative addresses, or a wait of two seconds"
	add c1 "$(dual)"
	settled c1
	inside far ip addr add fd00:1::3/64 dev br0 nodad
	netns c2
	fails 102 'DADFAILED' ADD macvlan c2 <<<"$(dual '{"enabledad":true}')"
	no_link c2
	same leases "10.1.0.2 fd00:1::2" "$(leases)"
}

# ---- the master -------------------------------------------------------------------------------

@test "without master it is the default route's interface" {
	local c
	c=$(l3 | jq -c 'del(.master)')
	netns c1
	fails 7 'no default route interface' ADD macvlan c1 <<<"$c"
	no_link c1
	host ip addr add 10.1.0.253/24 dev m0
	host ip route add default via 10.1.0.254
	add c1 "$c"
	same parent "$(host cat /sys/class/net/m0/ifindex)" "$(inside c1 ip -o link show eth0 | sed -E 's/.*@if([0-9]+):.*/\1/')"
	host ip route del default
	is_cnibox || return 0
	check "$c" c1
	del c1 "$c"
}

@test "without master: the interface of the list so far" {
	only_cnibox "takes the default route's"
	local c
	c=$(l3 | jq -c 'del(.master) | .prevResult = {cniVersion: "1.0.0", interfaces: [{name: "m0"},
		{name: "net0", mac: "02:00:00:00:00:09", sandbox: "/run/netns/c1"}]}')
	add c1 "$c"
	is '[.interfaces[].name]' '["eth0"]'
	inside c1 ip -o link show eth0 | grep -q "@if$(host cat /sys/class/net/m0/ifindex):"
	netns c2
	# Two on the node: neither.
	fails 7 'no default route interface' ADD macvlan c2 <<<"$(jq -c '.prevResult.interfaces += [{name: "m1"}]' <<<"$c")"
}

@test "linkInContainer: the master is in the container, named, by its default route, or the list's" {
	only_cnibox "newer than release 1.1.1"
	need_master_inside c1
	local c
	c=$(l3 '{"linkInContainer":true}')
	add c1 "$c" net1
	link_in c1 .link '"m0"' net1
	check "$c" c1 net1
	serve far 80
	same "c1 to the far side" "far 10.1.0.2" "$(ask c1 tcp 10.1.0.254 80)"
	del c1 "$c" net1
	inside c1 ip link show m0
	inside c1 ip addr add 10.1.0.251/24 dev m0
	inside c1 ip route add default via 10.1.0.254
	add c1 "$(jq -c 'del(.master, .ipam)' <<<"$c")" net1
	link_in c1 .link '"m0"' net1
	del c1 "$c" net1
	inside c1 ip route del default
	add c1 "$(jq -c 'del(.master, .ipam) | .prevResult = {cniVersion: "1.0.0", interfaces: [{name: "h0"},
		{name: "m0", sandbox: "/run/netns/c1"}]}' <<<"$c")" net1
	link_in c1 .link '"m0"' net1
}

@test "a master that is not there is named, and nothing is left" {
	netns c1
	fails 7 'Link not found' ADD macvlan c1 <<<"$(l3 '{"master":"m9"}')"
	! is_cnibox || [[ $output == *m9* ]]
	same leases '' "$(leases)"
	no_link c1
}

@test "the master, and another link of the node, are called as the container's link is to be" {
	host ip link set m0 down
	host ip link set m0 name eth0 up
	host ip link add eth1 type bridge
	add c1 "$(l3 '{"master":"eth0"}')"
	add c1 "$(l3 '{"master":"eth0"}')" eth1
	link_in c1 '.linkinfo.info_kind' macvlan eth1
	serve far 80
	same "c1 to the far side" "far 10.1.0.2" "$(ask c1 tcp 10.1.0.254 80)"
	check "$(l3 '{"master":"eth0"}')" c1
	same "links of the node" "eth0 eth1 lo" "$(host ls /sys/class/net | grep -v bonding | xargs)"
}

@test "without IPAM, under a name that the node has, too: the link is up" {
	local c
	c=$(l3 '{"master":"eth0"}' | jq -c 'del(.ipam)')
	host ip link set m0 down
	host ip link set m0 name eth0 up
	add c1 "$c"
	link_in c1 '.flags | contains(["UP","LOWER_UP"])' true
}

# ---- keys -------------------------------------------------------------------------------------

@test "mac: runtimeConfig, args, CNI_ARGS, config, in this order" {
	local c
	c=$(l3 '{"mac":"02:00:00:00:00:04"}')
	add c1 "$c"
	is '.interfaces[0].mac' 02:00:00:00:00:04
	CNI_ARGS='IgnoreUnknown=1;MAC=02-00-00-00-00-03;K8S_POD_NAME=x' add c2 "$c"
	is '.interfaces[0].mac' 02:00:00:00:00:03
	if is_cnibox; then
		CNI_ARGS='IgnoreUnknown=1;MAC=02:00:00:00:00:03' add c3 "$(l3 '{"mac":"02:00:00:00:00:04","args":{"cni":{"mac":"0200.0000.0002"}}}')"
		is '.interfaces[0].mac' 02:00:00:00:00:02
	fi
	CNI_ARGS='IgnoreUnknown=1;MAC=02:00:00:00:00:03' add c4 \
		"$(l3 '{"mac":"02:00:00:00:00:04","args":{"cni":{"mac":"02:00:00:00:00:02"}},"runtimeConfig":{"mac":"02:00:00:00:00:01"}}')"
	is '.interfaces[0].mac' 02:00:00:00:00:01
	link_in c4 .address 02:00:00:00:00:01
}

@test "what is wrong is refused before anything is made" {
	netns c1
	fails 7 'unknown macvlan mode' ADD macvlan c1 <<<"$(l3 '{"mode":"source"}')"
	fails 7 'invalid MTU 1501, must be \[0, master MTU\(1500\)\]' ADD macvlan c1 <<<"$(l3 '{"mtu":1501}')"
	fails 7 '' ADD macvlan c1 <<<"$(l3 '{"mac":"02:00"}')"
	CNI_ARGS='X=y' fails 4 'unknown args' ADD macvlan c1 <<<"$(l3)"
	no_link c1
	same leases '' "$(leases)"
	only_cnibox "does not know these keys"
	fails 7 '' ADD macvlan c1 <<<"$(l3 '{"bcqueuelen":-1}')"
	fails 7 '' ADD macvlan c1 <<<"$(l3 '{"bcqueuelen":4294967296}')"
	fails 7 'slaacWait' ADD macvlan c1 <<<"$(l3 '{"slaacWait":61}')"
}

@test "mtu, bcqueuelen, and the MTU in results of 1.1.0" {
	add c1 "$(l3 '{"mtu":1400,"bcqueuelen":2000}')"
	link_in c1 .mtu 1400
	! is_cnibox || link_in c1 .linkinfo.info_data.bcqueuelen 2000
	check "$(l3 '{"mtu":1400,"bcqueuelen":2000}')" c1
	add c2 "$(l3 '{"mode":"","mtu":0,"bcqueuelen":0}')"
	link_in c2 '[.mtu, .linkinfo.info_data.mode]' '[1500,"bridge"]'
	is_cnibox || return 0
	VERSION=1.1.0 add c3 "$(VERSION=1.1.0 l3 '{"mtu":1400}')"
	is '.interfaces[0].mtu' 1400
}

@test "DNS: IPAM's, unless the config has one of its own" {
	add c2 "$(l3 '{"dns":{"nameservers":["10.8.8.8"]}}')"
	is '.dns.nameservers' '["10.8.8.8"]'
	only_cnibox "drops IPAM's"
	host sh -c 'echo nameserver 10.9.9.9 >/etc/cni/resolv'
	add c1 "$(l3 '{"ipam":{"resolvConf":"/etc/cni/resolv"}}')"
	is '.dns.nameservers' '["10.9.9.9"]'
}
