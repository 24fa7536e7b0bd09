# ptp: a veth pair whose host end is the container's router. Addresses, routes, packets, what fails
# and what is left then, CHECK, GC, and both implementations on one attachment.

load helpers

setup() {
	need_applet ptp host-local
	sandbox
	mkdir "$T/bin"
	export CNI_PATH=$CNI_PLUGIN_DIR:$T/bin
}
teardown() { sandbox_end; }

GO_DIR=${CNI_GO_DIR:-/usr/lib/cni}
need_go() { [ -x "$GO_DIR/ptp" ] && [ ! -L "$GO_DIR/ptp" ] || skip "no Go plugins in $GO_DIR"; }

# l3 [KEYS]: addresses from 10.1.0.0/24 and a default route.
l3() {
	jq -nc --argjson keys "${1:-"{}"}" --arg v "${VERSION:-1.0.0}" '{cniVersion: $v, name: "net1",
		type: "ptp", ipam: {type: "host-local", subnet: "10.1.0.0/24",
		routes: [{dst: "0.0.0.0/0"}]}} * $keys | if .ipam.ranges then del(.ipam.subnet) else . end'
}

# dual [KEYS]: from 10.1.0.0/24 and fd00:1::/64, with default routes.
dual() {
	l3 "$(jq -nc --argjson keys "${1:-"{}"}" '{ipam: {ranges: [[{subnet: "10.1.0.0/24"}], [{subnet: "fd00:1::/64"}]],
		routes: [{dst: "0.0.0.0/0"}, {dst: "::/0"}]}} * $keys')"
}

# fake RESULT [KEYS]: IPAM is a double that answers ADD with RESULT; $T/fake.log has its verbs.
fake() {
	cat >"$T/bin/fake" <<-END
		#!/bin/sh
		cat >/dev/null
		echo "\$CNI_COMMAND" >>"$T/fake.log"
		[ "\$CNI_COMMAND" != ADD ] || cat "$T/result"
	END
	chmod +x "$T/bin/fake"
	jq -n --argjson r "$1" '{cniVersion: "1.0.0"} + $r' >"$T/result"
	jq -nc --argjson keys "${2:-"{}"}" \
		'{cniVersion: "1.0.0", name: "net1", type: "ptp", ipam: {type: "fake"}} * $keys'
}

# add ID CONFIG [IFNAME]: the namespace and the ADD. Sets port and keeps the result.
add() {
	host test -e "/run/netns/$1" || netns "$1"
	ok ADD ptp "$1" "${3:-eth0}" <<<"$2"
	port=$(jq -r '.interfaces[0].name' <<<"$output")
	printf '%s' "$output" >"$T/result-$1-${3:-eth0}"
}
del() { ok DEL ptp "$1" "${3:-eth0}" <<<"$2"; }
with_prev() { jq -c --slurpfile r "$T/result-$2-eth0" ".prevResult = (\$r[0] | ${3:-.})" <<<"$1"; }
check() { ok CHECK ptp "$2" <<<"$(with_prev "$1" "$2")"; }
# mismatch REGEX CONFIG ID [FILTER]
mismatch() { fails 101 "$1" CHECK ptp "$3" <<<"$(with_prev "$2" "$3" "${4:-.}")"; }

link() { host_is ".[0] | $2" "$3" ip -d -j link show dev "$1"; }
link_in() { inside_is "$1" ".[0] | $3" "$4" ip -d -j link show dev "$2"; }
addrs() { inside "$1" ip -j addr show dev "$2" | jq -r '.[].addr_info[]? | select(.scope == "global")
	| "\(.local)/\(.prefixlen)"' | xargs; }
sysctl() { inside "$1" cat "/proc/sys/net/$2"; }
leases() { host sh -c 'ls /var/lib/cni/networks/net1 2>/dev/null | grep -v -e ^lock -e ^last' | xargs; }
# routes NS FAMILY: destination, gateway, scope and source of the main table's unicast routes.
routes() {
	inside "$1" ip -j "-$2" route | jq -r '.[] | select((.dst | startswith("fe80")) | not)
		| [.dst, (.gateway // "-"), (.scope // "-"), (.prefsrc // "-")] | join(" ")' | sort
}
settled() { [ -z "$(inside "$1" ip -6 addr show tentative scope global)" ]; }

# ---- what there is ----------------------------------------------------------------------------

@test "the pair, its addresses and the result" {
	add c1 "$(l3)"
	is '.interfaces | length' 2
	is '[.interfaces[].sandbox]' '[null,"/run/netns/c1"]'
	is '.interfaces[1].name' eth0
	is '.ips' '[{"interface":1,"address":"10.1.0.2/24","gateway":"10.1.0.1"}]'
	is '.routes' '[{"dst":"0.0.0.0/0"}]'
	[[ $port =~ ^veth[0-9a-f]{8}$ ]]
	link "$port" .linkinfo.info_kind veth
	link "$port" .address "$(jq '.interfaces[0].mac' <<<"$output")"
	link_in c1 eth0 .address "$(jq '.interfaces[1].mac' <<<"$output")"
	link_in c1 eth0 '.flags | contains(["UP","LOWER_UP"])' true
	same "address inside" 10.1.0.2/24 "$(addrs c1 eth0)"
	same "address outside" 10.1.0.1/32 "$(addrs host "$port")"
	del c1 "$(l3)"
	nothing_left
	same leases '' "$(leases)"
	inside c1 sh -c '! ip link show eth0'
}

@test "the whole network is behind the gateway, also the neighbours" {
	add c1 "$(l3)"
	same "routes inside" "10.1.0.0/24 10.1.0.1 - 10.1.0.2
10.1.0.1 - link 10.1.0.2
default 10.1.0.1 - -" "$(routes c1 4)"
	same "routes outside" "10.1.0.2 - host -" "$(routes host 4)"
}

@test "IPv6: the same" {
	add c1 "$(dual)"
	is '[.ips[].address]' '["10.1.0.2/24","fd00:1::2/64"]'
	wait_for 5 settled c1
	same "addresses outside" "10.1.0.1/32 fd00:1::1/128" "$(addrs host "$port")"
	inside c1 ip -6 route | grep -q "^fd00:1::/64 via fd00:1::1 dev eth0 src fd00:1::2"
	inside c1 ip -6 route | grep -q "^fd00:1::1 dev eth0 src fd00:1::2"
	inside c1 ip -6 route | grep -q "^default via fd00:1::1 dev eth0"
	host ip -6 route | grep -q "^fd00:1::2 dev $port"
	del c1 "$(dual)"
	nothing_left
}

@test "containers reach each other, the node, and the node them, both families" {
	add c1 "$(dual)"
	add c2 "$(dual)"
	for n in c1 c2 host; do wait_for 5 settled $n; done
	serve c1 80
	serve c1 81 -6
	serve host 80
	serve host 81 -6
	same "c2 to c1" "c1 10.1.0.3" "$(ask c2 tcp 10.1.0.2 80)"
	same "c2 to c1, IPv6" "c1 fd00:1::3" "$(ask c2 tcp fd00:1::2 81)"
	same "c2 to the node" "host 10.1.0.3" "$(ask c2 tcp 10.1.0.1 80)"
	same "c2 to the node, IPv6" "host fd00:1::3" "$(ask c2 tcp fd00:1::1 81)"
	same "the node to c1" "c1 10.1.0.1" "$(ask host tcp 10.1.0.2 80)"
	same "the node to c1, IPv6" "c1 fd00:1::1" "$(ask host tcp fd00:1::2 81)"
}

@test "IPv6 works at once, without a wait for duplicate address detection" {
	only_cnibox "waits two seconds, and the node's end settles later"
	add c1 "$(dual)"
	settled c1
	settled host
}

@test "forwarding is enabled for the families that there are" {
	host sh -c 'echo 0 >/proc/sys/net/ipv6/conf/all/forwarding'
	add c1 "$(l3)"
	same ip_forward 1 "$(sysctl host ipv4/ip_forward)"
	same forwarding 0 "$(sysctl host ipv6/conf/all/forwarding)"
	add c2 "$(dual)"
	same forwarding 1 "$(sysctl host ipv6/conf/all/forwarding)"
}

@test "mtu: both ends, and in the result of 1.1.0" {
	add c1 "$(l3 '{"mtu":1400}')"
	link "$port" .mtu 1400
	link_in c1 eth0 .mtu 1400
	is_cnibox || return 0
	VERSION=1.1.0 add c2 "$(VERSION=1.1.0 l3 '{"mtu":1410}')"
	is '[.interfaces[].mtu]' '[1410,1410]'
}

@test "DNS: IPAM's, unless the config has one of its own" {
	host sh -c 'mkdir -p /etc/cni; echo nameserver 10.9.9.9 >/etc/cni/resolv'
	add c1 "$(l3 '{"ipam":{"resolvConf":"/etc/cni/resolv"}}')"
	is '.dns.nameservers' '["10.9.9.9"]'
	add c2 "$(l3 '{"ipam":{"resolvConf":"/etc/cni/resolv"},"dns":{"nameservers":["10.8.8.8"]}}')"
	is '.dns.nameservers' '["10.8.8.8"]'
}

@test "MAC addresses asked for at run time are not read here" {
	netns c1
	CNI_ARGS='IgnoreUnknown=1;MAC=02:00:00:00:00:77' ok ADD ptp c1 \
		<<<"$(l3 '{"runtimeConfig":{"mac":"02:00:00:00:00:78"}}')"
	! grep -q 02:00:00:00:00:7 "$T/stdout"
}

@test "several addresses of distinct networks" {
	add c1 "$(l3 '{"ipam":{"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.2.0.0/24"}]]}}')"
	same "addresses inside" "10.1.0.2/24 10.2.0.2/24" "$(addrs c1 eth0)"
	same "addresses outside" "10.1.0.1/32 10.2.0.1/32" "$(addrs host "$port")"
	same "routes outside" "10.1.0.2 - host -
10.2.0.2 - host -" "$(routes host 4)"
}

@test "two addresses of one network and gateway" {
	only_cnibox "fails with file exists"
	local c
	c=$(fake '{"ips":[{"address":"10.1.0.5/24","gateway":"10.1.0.1"},
		{"address":"10.1.0.6/24","gateway":"10.1.0.1"}],"routes":[{"dst":"0.0.0.0/0"}]}')
	add c1 "$c"
	serve c1 80
	same first "c1 10.1.0.1" "$(ask host tcp 10.1.0.5 80)"
	same second "c1 10.1.0.1" "$(ask host tcp 10.1.0.6 80)"
	check "$c" c1
	del c1 "$c"
	nothing_left
}

@test "a /32 and a /128 address, with a gateway outside of them" {
	only_cnibox "fails to delete a route that is not there"
	local c
	c=$(fake '{"ips":[{"address":"10.1.0.5/32","gateway":"169.254.1.1"},
		{"address":"fd00:1::5/128","gateway":"fe80::1"}],
		"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]}')
	add c1 "$c"
	serve c1 80
	serve host 80
	same "the node to c1" "c1 169.254.1.1" "$(ask host tcp 10.1.0.5 80)"
	same "c1 to the node" "host 10.1.0.5" "$(ask c1 tcp 169.254.1.1 80)"
	inside c1 ping -6 -c 1 -W 2 "fe80::1%eth0"
	check "$c" c1
	del c1 "$c"
	nothing_left
}

# ---- layer 2 ----------------------------------------------------------------------------------

@test "without IPAM: a pair, no address, no forwarding" {
	only_cnibox "wants IPAM"
	local c='{"cniVersion":"1.0.0","name":"net1","type":"ptp"}'
	add c1 "$c"
	is '.interfaces | length' 2
	is '.ips // []' '[]'
	link_in c1 eth0 '.flags | contains(["UP","LOWER_UP"])' true
	same "addresses" '' "$(addrs c1 eth0)$(addrs host "$port")"
	same ip_forward 0 "$(sysctl host ipv4/ip_forward)"
	check "$c" c1
	ok STATUS ptp c1 <<<"${c/1.0.0/1.1.0}"
	del c1 "$c"
	nothing_left
}

# ---- ipMasq -----------------------------------------------------------------------------------

@test "ipMasq: the world outside sees the node's address, both families; nothing stays after DEL" {
	local c
	c=$(dual '{"ipMasq":true}')
	netns out
	host ip link add to-out type veth peer name eth0 netns out
	host ip addr add 192.0.2.1/24 dev to-out
	host ip addr add 2001:db8::1/64 dev to-out nodad
	host ip link set to-out up
	inside out ip addr add 192.0.2.2/24 dev eth0
	inside out ip addr add 2001:db8::2/64 dev eth0 nodad
	inside out ip link set eth0 up
	add c1 "$c"
	wait_for 5 settled c1
	wait_for 5 settled host
	serve out 80
	serve out 81 -6
	same IPv4 "out 192.0.2.1" "$(ask c1 tcp 192.0.2.2 80)"
	same IPv6 "out 2001:db8::1" "$(ask c1 tcp 2001:db8::2 81)"
	del c1 "$c"
	nothing_left to-out
	! host nft list ruleset | grep -q 10.1.0
}

@test "ipMasq: an unknown backend is refused at once" {
	only_cnibox "1.1.1 does not know the key"
	netns c1
	fails 7 'unknown ipmasq backend' ADD ptp c1 <<<"$(l3 '{"ipMasq":true,"ipMasqBackend":"pf"}')"
	same leases '' "$(leases)"
}

# ---- what fails -------------------------------------------------------------------------------

@test "a failing ADD leaves nothing: an address without gateway" {
	local c
	c=$(fake '{"ips":[{"address":"10.1.0.5/24"}]}')
	netns c1
	fails 7 '' ADD ptp c1 <<<"$c"
	is_cnibox || return 0
	[[ $output == *gateway* ]]
	same "IPAM was asked" "ADD DEL" "$(xargs <"$T/fake.log")"
	nothing_left
	inside c1 sh -c '! ip link show eth0'
}

@test "a failing ADD leaves nothing: IPAM gives no address" {
	netns c1
	fails any 'missing IP config' ADD ptp c1 <<<"$(fake '{"ips":[]}')"
	is_cnibox || return 0
	same "IPAM was asked" "ADD DEL" "$(xargs <"$T/fake.log")"
	nothing_left
}

@test "a failing ADD leaves nothing: a route that the kernel refuses" {
	netns c1
	fails any '' ADD ptp c1 <<<"$(l3 '{"ipam":{"routes":[{"dst":"10.7.0.0/16","gw":"172.31.0.1"}]}}')"
	is_cnibox || return 0
	nothing_left
	same leases '' "$(leases)"
	inside c1 sh -c '! ip link show eth0'
}

@test "a failing ADD leaves nothing: the result cannot be printed" {
	only_cnibox "leaves the pair"
	netns c1
	CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 CNI_PATH=$CNI_PLUGIN_DIR \
		run host sh -c 'exec "$1" >/dev/full' ptp "$CNI_PLUGIN_DIR/ptp" <<<"$(l3 '{"ipMasq":true}')"
	[ "$status" -eq 1 ]
	nothing_left
	same leases '' "$(leases)"
}

@test "the interface's name is taken" {
	netns c1
	inside c1 ip link add eth0 type bridge
	fails 102 'already exists' ADD ptp c1 <<<"$(l3)"
	link_in c1 eth0 .linkinfo.info_kind bridge
	is_cnibox || return 0
	nothing_left
}

@test "mtu: out of bounds, or too small for IPv6, is refused at once" {
	only_cnibox "finds out late"
	netns c1
	fails 7 mtu ADD ptp c1 <<<"$(l3 '{"mtu":67}')"
	fails 7 mtu ADD ptp c1 <<<"$(l3 '{"mtu":65536}')"
	same leases '' "$(leases)"
}

@test "a second ADD of a living attachment fails and leaves it alone" {
	local c
	c=$(l3)
	add c1 "$c"
	cni ADD ptp c1 <<<"$c"
	[ "$status" -eq 1 ]
	check "$c" c1
	same lease 10.1.0.2 "$(leases)"
}

@test "a stale host route does not keep the traffic of a new container" {
	only_cnibox "leaves it on the dead link"
	host ip link add dead type veth peer name dead2
	host ip link set dead up
	host ip route add 10.1.0.2/32 dev dead scope host
	add c1 "$(l3)"
	serve c1 80
	same answer "c1 10.1.0.1" "$(ask host tcp 10.1.0.2 80)"
}

@test "a route to the same address that was there counts again when the attachment goes" {
	only_cnibox "does not get past it"
	local one two before
	# Two networks with the same addresses, each with leases of its own.
	one=$(dual '{"ipam":{"dataDir":"/var/lib/cni/one"}}')
	two=$(jq -c '.name = "net2" | .ipam.dataDir = "/var/lib/cni/two"' <<<"$one")
	host ip link add away type veth peer name away2
	host ip link set away up
	host ip link set away2 up
	host ip route add 10.1.0.2 dev away
	host ip route add fd00:1::2 dev away
	before=$(host ip route && host ip -6 route show fd00:1::2)
	add c1 "$one"
	add c2 "$two"
	serve c1 80
	serve c1 80 -6
	serve c2 80
	serve c2 80 -6
	same "the newest" "c2 10.1.0.1 c2 fd00:1::1" "$(ask host tcp 10.1.0.2 80) $(ask host tcp fd00:1::2 80)"
	check "$two" c2
	del c2 "$two"
	same "the one before" "c1 10.1.0.1 c1 fd00:1::1" "$(ask host tcp 10.1.0.2 80) $(ask host tcp fd00:1::2 80)"
	check "$one" c1
	del c1 "$one"
	same "the first" "$before" "$(host ip route && host ip -6 route show fd00:1::2)"
}

@test "a failing ADD leaves a route to the same address" {
	only_cnibox "does not get past it"
	local before
	host ip link add away type veth peer name away2
	host ip link set away up
	host ip route add 10.1.0.2 dev away
	before=$(host ip route)
	netns c1
	host sh -c 'echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6'
	fails 100 'IPv6 is disabled' ADD ptp c1 <<<"$(dual)"
	same routes "$before" "$(host ip route)"
}

# ---- DEL --------------------------------------------------------------------------------------

@test "DEL with neither namespace nor prevResult" {
	only_cnibox "leaves the pair to the namespace's end"
	local c
	c=$(dual '{"ipMasq":true}')
	add c1 "$c"
	NETNS='' del c1 "$c"
	nothing_left
	same leases '' "$(leases)"
}

@test "DEL twice, when the namespace is gone, and of what was never there" {
	local c
	c=$(l3 '{"ipMasq":true}')
	add c1 "$c"
	host ip netns del c1
	del c1 "$c"
	del c1 "$c"
	del c9 "$c"
	same leases '' "$(leases)"
	is_cnibox || return 0
	nothing_left
}

@test "DEL of one leaves the other" {
	local c
	c=$(l3 '{"ipMasq":true}')
	add c1 "$c"
	add c2 "$c"
	del c1 "$c"
	check "$c" c2
	serve c2 80
	same answer "c2 10.1.0.1" "$(ask host tcp 10.1.0.3 80)"
}

@test "DEL of what the Go plugin made, CHECK too" {
	only_cnibox "is about both"
	need_go
	local c
	c=$(dual '{"ipMasq":true}')
	netns c1
	CNI_PATH=$GO_DIR ok ADD "$GO_DIR/ptp" c1 <<<"$c"
	printf '%s' "$output" >"$T/result-c1-eth0"
	check "$(dual)" c1
	del c1 "$c"
	nothing_left
	inside c1 sh -c '! ip link show eth0'
	! host nft list ruleset | grep -q 10.1.0
}

@test "DEL by the Go plugin of what we made, CHECK too" {
	only_cnibox "is about both"
	need_go
	local c
	c=$(dual)
	add c1 "$c"
	CNI_PATH=$GO_DIR ok CHECK "$GO_DIR/ptp" c1 <<<"$(with_prev "$c" c1)"
	CNI_PATH=$GO_DIR ok DEL "$GO_DIR/ptp" c1 <<<"$c"
	nothing_left
	same leases '' "$(leases)"
}

# ---- CHECK, STATUS, GC ------------------------------------------------------------------------

@test "CHECK is content with what ADD made" {
	local c
	c=$(dual)
	add c1 "$c"
	check "$c" c1
}

@test "CHECK needs prevResult" {
	add c1 "$(l3)"
	fails 7 'Required prevResult missing' CHECK ptp c1 <<<"$(l3)"
}

@test "CHECK sees that the interface is gone, of another kind or with another MAC" {
	local c
	c=$(l3)
	add c1 "$c"
	mismatch "Mac" "$c" c1 '.interfaces[1].mac = "02:00:00:00:00:01"'
	mismatch "" "$c" c1 '.interfaces[1].name = "eth7"'
	inside c1 ip link del eth0
	mismatch "" "$c" c1
	inside c1 ip link add eth0 type bridge
	mismatch "" "$c" c1
}

@test "CHECK sees that an address or a route is gone" {
	local c
	c=$(l3)
	add c1 "$c"
	inside c1 ip route del default
	mismatch "Route" "$c" c1
	inside c1 ip route add default via 10.1.0.1
	check "$c" c1
	inside c1 ip addr del 10.1.0.2/24 dev eth0
	mismatch "addr" "$c" c1
}

@test "CHECK sees that the node's end lost its address, its route or the masquerading" {
	only_cnibox "looks at the container alone"
	local c
	c=$(l3 '{"ipMasq":true}')
	add c1 "$c"
	check "$c" c1
	host ip route del 10.1.0.2/32
	mismatch "10.1.0.2" "$c" c1
	host ip route add 10.1.0.2/32 dev "$port" scope host
	check "$c" c1
	host ip addr del 10.1.0.1/32 dev "$port"
	mismatch "10.1.0.1" "$c" c1
	# With its last address the link lost its routes, too.
	host ip addr add 10.1.0.1/32 dev "$port"
	host ip route add 10.1.0.2/32 dev "$port" scope host
	check "$c" c1
	host nft flush ruleset
	mismatch "" "$c" c1
}

@test "STATUS is IPAM's answer" {
	only_cnibox "1.1.1 does not know the verb"
	ok STATUS ptp c1 <<<"$(VERSION=1.1.0 l3)"
	fails any '' STATUS ptp c1 <<<"$(VERSION=1.1.0 l3 '{"ipam":{"subnet":"nonsense"}}')"
}

@test "GC removes exactly what is stale" {
	only_cnibox "1.1.1 does not know the verb"
	local c gc
	c=$(VERSION=1.1.0 l3 '{"ipMasq":true}')
	add c1 "$c"
	add c2 "$c"
	gc=$(jq -c '.["cni.dev/valid-attachments"] = [{containerID: "c2", ifname: "eth0"}]' <<<"$c")
	ok GC ptp c1 <<<"$gc"
	same leases 10.1.0.3 "$(leases)"
	inside c1 sh -c '! ip link show eth0'
	check "$c" c2
	ok GC ptp c1 <<<"$c"
	nothing_left
	same leases '' "$(leases)"
}

# ---- versions ---------------------------------------------------------------------------------

@test "the result in every version" {
	local v
	for v in 0.3.0 0.3.1 0.4.0 1.0.0 1.1.0; do
		[ $v != 1.1.0 ] || is_cnibox || continue
		VERSION=$v add "c$v" "$(VERSION=$v l3)"
		is .cniVersion "$v"
		is '.ips[0].interface' 1
		is '.interfaces | length' 2
	done
	VERSION=0.2.0 add old "$(VERSION=0.2.0 l3)" || :
	is '.ip4.gateway' 10.1.0.1
}
