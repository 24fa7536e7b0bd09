# vlan on a kernel that has VLAN links: tests/vm/run bats tests/vm/vlan-link.bats
#
# Executing a program takes a tenth of a second in there: what the shell can do it does itself.

load ../bats/helpers

# A master m0 on the node, whose other end is eth0 of the namespace "far", with VLAN 10.
setup() {
	need_applet vlan host-local
	sandbox
	netns far
	host ip -batch - <<-'END'
		link add m0 type veth peer name eth0 netns far
		link set m0 up
	END
	inside far ip -batch - <<-'END' 2>/dev/null || skip "this kernel has no VLAN links (8021q)"
		link set eth0 up
		link add link eth0 name v10 up type vlan id 10
		addr add 10.1.0.254/24 dev v10
	END
	netns c1
}
teardown() { sandbox_end; }

GO_DIR=${CNI_GO_DIR:-/usr/lib/cni}

# conf [KEYS]: KEYS is an object; the VLAN is $ID, the master $MASTER, the network $NET.
conf() {
	local keys=${1:-"{}"}
	keys=${keys#\{}
	[ "$keys" = '}' ] || keys=,$keys
	printf '%s' "{\"cniVersion\":\"${VERSION:-1.0.0}\",\"name\":\"${NET:-net1}\",\"type\":\"vlan\"," \
		"\"master\":\"${MASTER-m0}\",\"vlanId\":${ID:-10},\"ipam\":{\"type\":\"host-local\"," \
		"\"subnet\":\"10.1.0.0/24\"}$keys"
}
add() {
	ok ADD vlan "$1" <<<"$2"
	printf '%s' "$output" >"$T/result-$1"
}
with_prev() { printf '%s' "${1%\}},\"prevResult\":$(<"$T/result-$2")}"; }
check() { ok CHECK vlan "$2" <<<"$(with_prev "$1" "$2")"; }
mismatch() { fails 101 "$1" CHECK vlan c1 <<<"$(with_prev "$2" c1)"; }
links() {
	local all
	all=$(inside "$1" ip -br link | awk '{sub("@.*", "", $1); print $1}')
	echo $all
}
# bare NAME: lo only.
bare() { same "links of $1" lo "$(links "$1")"; }

@test "tagged traffic; other VLANs are out of reach; the result; gone after DEL, which may be repeated" {
	local c
	c=$(conf)
	add c1 "$c"
	is '[.interfaces[].name, .interfaces[].sandbox, .ips[].address, .ips[].interface]' \
		'["eth0","/run/netns/c1","10.1.0.2/24",0]'
	inside_is c1 '.[0] | [.linkinfo.info_kind, .linkinfo.info_data.id, .linkinfo.info_data.protocol, .mtu,
		(.flags | index("UP") != null)]' '["vlan",10,"802.1Q",1500,true]' ip -d -j link show dev eth0
	netns c2
	add c2 "$(ID=20 conf)"
	netns far2
	inside far ip link add link eth0 name v20 netns far2 type vlan id 20
	inside far2 ip -batch - <<-'END'
		link set v20 up
		addr add 10.1.0.253/24 dev v20
	END
	serve far 80
	serve far2 80
	same "VLAN 10" "far 10.1.0.2" "$(ask c1 tcp 10.1.0.254 80)"
	same "VLAN 20" "far2 10.1.0.3" "$(ask c2 tcp 10.1.0.253 80)"
	same "from one VLAN into the other" "" "$(knock c1 tcp 10.1.0.253 80)"
	check "$c" c1
	ok DEL vlan c1 <<<"$c"
	bare c1
	ok DEL vlan c1 <<<"$c"
	ok DEL vlan c2 <<<"$(ID=20 conf)"
	nothing_left m0
}

@test "CHECK sees VLAN ID, master, MTU and state" {
	local c
	c=$(conf '{"mtu":1400}')
	add c1 "$c"
	check "$c" c1
	mismatch '' "$(ID=11 conf '{"mtu":1400}')"
	! is_cnibox || [[ $output == *'VLAN ID is 10, not 11'* ]]
	inside c1 ip link set eth0 mtu 1300
	mismatch '' "$c"
	only_cnibox "looks at neither master nor state"
	[[ $output == *'MTU is 1300, not 1400'* ]]
	inside c1 ip link set eth0 mtu 1400
	host ip link add m1 type veth peer name p1
	mismatch 'master is not \\?"m1' "$(MASTER=m1 conf '{"mtu":1400}')"
	inside c1 ip link set eth0 down
	mismatch 'eth0 is down' "$c"
}

@test "MTU: the master's, or less, and in the result of 1.1.0; DNS" {
	only_cnibox "has no mtu in its results"
	VERSION=1.1.0
	add c1 "$(conf '{"dns":{"domain":"example.net"}}')"
	is '[.interfaces[0].mtu, .dns.domain]' '[1500,"example.net"]'
	netns c2
	add c2 "$(ID=20 conf '{"mtu":1300}')"
	is '.interfaces[0].mtu' 1300
	inside_is c2 '.[0].mtu' 1300 ip -j link show dev eth0
}

@test "a VLAN that is taken: the holder is named, and nothing is left" {
	local c
	c=$(conf)
	add c1 "$c"
	netns c2
	fails 102 'file exists' ADD vlan c2 <<<"$c"
	only_cnibox "leaves a link, and tells nobody whose it is"
	[[ $output == *'VLAN 10 of \"m0\" is held by net1 c1 eth0.'*'bridge with \"vlan\"'* ]]
	bare c2
	check "$c" c1
	ok DEL vlan c1 <<<"$c"
	nothing_left m0
	# By a link of the node.
	host ip link add link m0 name mine type vlan id 10
	fails 102 'held by link \\?"mine' ADD vlan c2 <<<"$c"
	bare c2
	nothing_left m0 mine
	# By one in a namespace that the node has no name for.
	host ip link set mine netns c1
	fails 102 'held by (link \\?"mine|a link in a namespace)' ADD vlan c2 <<<"$c"
}

@test "the node may have a link of the container's name" {
	host ip link add eth0 type veth peer name p1
	add c1 "$(conf)"
	inside_is c1 '.[0].linkinfo.info_kind' vlan ip -d -j link show dev eth0
	[ "$(links c1)" = "lo eth0" ]
	ok DEL vlan c1 <<<"$(conf)"
	bare c1
	host ip link show dev eth0
}

@test "linkInContainer: the master by name, or the only one of the list" {
	only_cnibox "1.1.1 does not know the key"
	local c n
	host ip link set m0 netns c1
	inside c1 ip link set m0 up
	c=$(conf '{"linkInContainer":true}')
	add c1 "$c"
	serve far 80
	same "packets" "far 10.1.0.2" "$(ask c1 tcp 10.1.0.254 80)"
	check "$c" c1
	fails 102 'VLAN 10 of \\?"m0\\?" is held by net1 c1 eth0' ADD vlan c1 eth1 <<<"$c"
	ok DEL vlan c1 <<<"$c"
	[ "$(links c1)" = "lo m0" ]
	c=$(MASTER='' conf '{"linkInContainer":true}')
	printf '%s' '{"cniVersion":"1.0.0","interfaces":[{"name":"m0","sandbox":"/run/netns/c1"},{"name":"br0"}]}' >"$T/result-c1"
	add c1 "$(with_prev "$c" c1)"
	same "packets" "far 10.1.0.3" "$(ask c1 tcp 10.1.0.254 80)"
	check "$c" c1
	ok DEL vlan c1 <<<"$c"
	[ "$(links c1)" = "lo m0" ]
	nothing_left
}

@test "DEL finds the link when it was renamed, and leaves another attachment's" {
	only_cnibox "the Go plugin goes by the name"
	local c
	c=$(conf)
	add c1 "$c"
	ok ADD vlan c1 eth1 <<<"$(ID=20 conf)"
	inside c1 ip -batch - <<-'END'
		link set eth0 down
		link set eth0 name moved
		link set eth1 down
		link set eth1 name eth0
	END
	ok DEL vlan c1 eth0 <<<"$c"
	same "links" "lo eth0" "$(links c1)"
	ok DEL vlan c1 eth1 <<<"$c"
	bare c1
	nothing_left m0
}

@test "DEL though the namespace, or the master with its link, is gone" {
	local c
	c=$(conf)
	add c1 "$c"
	host ip netns del c1
	ok DEL vlan c1 <<<"$c"
	nothing_left m0
	only_cnibox "wants the master on DEL"
	netns c2
	wait_for 30 cni ADD vlan c2 <<<"$c"
	ok DEL vlan c2 <<<"$c"
	add c2 "$c"
	host ip link del m0
	bare c2
	ok DEL vlan c2 <<<"$c"
	nothing_left
}

@test "a failing ADD leaves neither link nor lease" {
	only_cnibox "leaves the link, and in some cases the lease"
	fails any '' ADD vlan c1 <<<"$(conf '{"ipam":{"type":"host-local","subnet":"10.1.0.0/33"}}')"
	bare c1
	fails any '' ADD vlan c1 <<<"$(conf '{"ipam":{"type":"host-local","subnet":"10.1.0.0/24",
		"routes":[{"dst":"10.7.0.0/16","gw":"172.31.0.1"}]}}')"
	bare c1
	nothing_left m0
}

@test "GC takes what is not valid, of its own network only" {
	only_cnibox "has no GC"
	local c
	VERSION=1.1.0
	c=$(conf)
	add c1 "$c"
	netns c2
	add c2 "$(ID=20 conf)"
	netns c3
	add c3 "$(ID=30 NET=net2 conf)"
	ok GC vlan '' <<<"${c%\}},\"cni.dev/valid-attachments\":[{\"containerID\":\"c1\",\"ifname\":\"eth0\"}]}"
	check "$c" c1
	bare c2
	ok GC vlan '' <<<"${c%\}},\"cni.dev/valid-attachments\":[]}"
	bare c1
	[ "$(links c3)" = "lo eth0" ]
}

@test "STATUS: the master, and IPAM" {
	only_cnibox "looks at nothing; 1.1.1 has none"
	VERSION=1.1.0
	ok STATUS vlan '' <<<"$(conf)"
	fails 50 'nowhere' STATUS vlan '' <<<"$(MASTER=nowhere conf)"
	ok STATUS vlan '' <<<"$(MASTER='' conf '{"linkInContainer":true}')"
	fails 7 'VLAN ID' STATUS vlan '' <<<"$(ID=4095 conf)"
	fails 7 '' STATUS vlan '' <<<"$(conf '{"ipam":{"type":"host-local","subnet":"10.1.0.0/33"}}')"
}

@test "what the Go plugin made is checked and deleted by ours, and the other way round" {
	only_cnibox "is about both"
	[ -x "$GO_DIR/vlan" ] && [ ! -L "$GO_DIR/vlan" ] || skip "no Go plugins in $GO_DIR"
	local c
	c=$(conf)
	CNI_PATH=$GO_DIR ok ADD "$GO_DIR/vlan" c1 <<<"$c"
	printf '%s' "$output" >"$T/result-c1"
	check "$c" c1
	ok DEL vlan c1 <<<"$c"
	bare c1
	nothing_left m0
	add c1 "$c"
	CNI_PATH=$GO_DIR ok CHECK "$GO_DIR/vlan" c1 <<<"$(with_prev "$c" c1)"
	CNI_PATH=$GO_DIR ok DEL "$GO_DIR/vlan" c1 <<<"$c"
	bare c1
	nothing_left m0
}
