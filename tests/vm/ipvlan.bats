# ipvlan on a kernel that has it: tests/vm/run bats tests/vm/ipvlan.bats

load ../bats/helpers
load ../bats/ipvlan

setup() {
	need_applet ipvlan host-local
	sandbox
	make_master
	host ip link add link m0 name probe type ipvlan 2>/dev/null || skip "this kernel has no ipvlan"
	host ip link del probe
	export CNI_PATH=$CNI_PLUGIN_DIR:$T
}
teardown() { sandbox_end; }

# ---- modes, with packets ----------------------------------------------------------------------

@test "l2: the link, its address and the result; containers reach each other and the far side" {
	add c1 "$(conf)"
	is '[.interfaces[0].name, .interfaces[0].sandbox, (.interfaces | length), .ips]' \
		'["eth0","/run/netns/c1",1,[{"interface":0,"address":"10.1.0.2/24","gateway":"10.1.0.1"}]]'
	link_in c1 '[.linkinfo.info_kind, .linkinfo.info_data.mode, .mtu, .addr_info[0].local,
		(.flags | contains(["UP","LOWER_UP"]))]' '["ipvlan","l2",1500,"10.1.0.2",true]'
	link_in c1 .address "$(<"/proc/$HOLDER/root/sys/class/net/m0/address")"
	add c2 "$(conf '"mode":""')"
	serve c1 80
	serve far 80
	same "c2 to c1" "c1 10.1.0.3" "$(ask c2 tcp 10.1.0.2 80)"
	same "c2 to the far side" "far 10.1.0.3" "$(ask c2 tcp 10.1.0.254 80)"
	same "the far side to c1" "c1 10.1.0.254" "$(ask far tcp 10.1.0.2 80)"
	check "$(conf)" c1
	del c1 "$(conf)"
	no_link c1
	same leases 10.1.0.3 "$(leases)"
	del c2 "$(conf)"
	nothing_left m0
}

# routed MODE: the node's stack routes, no neighbour is asked.
routed() {
	local c
	c=$(l3 "\"mode\":\"$1\"")
	add c1 "$c"
	link_in c1 '[.linkinfo.info_data.mode, (.flags | contains(["NOARP"]))]' "[\"$1\",true]"
	add c2 "$c"
	serve c1 80
	serve far 80
	same "c2 to c1" "c1 10.2.0.3" "$(ask c2 tcp 10.2.0.2 80)"
	same "c2 to the far side" "far 10.2.0.3" "$(ask c2 tcp 10.1.0.254 80)"
	same "the far side to c1" "c1 10.1.0.254" "$(ask far tcp 10.2.0.2 80)"
	check "$c" c1
	del c1 "$c"
	del c2 "$c"
	nothing_left m0
}

@test "l3: the node's stack routes, containers reach each other and the far side" { routed l3; }

@test "l3s: the same" { routed l3s; }

@test "flag private, and vepa: containers do not reach each other, but the far side" {
	only_cnibox "does not know the key"
	local flag c
	for flag in private vepa; do
		c=$(conf "\"flag\":\"$flag\"")
		add "a$flag" "$c"
		link_in "a$flag" ".linkinfo.info_data.$flag" true
		add "b$flag" "$c"
		serve "a$flag" 80
		[ $flag = vepa ] || serve far 80
		[[ $(ask "b$flag" tcp 10.1.0.254 80) == far* ]]
		[[ $(ask far tcp "$(jq -r '.ips[0].address | split("/")[0]' "$T/result-a$flag")" 80) == "a$flag"* ]]
		same "$flag, container to container" "" \
			"$(knock "b$flag" tcp "$(jq -r '.ips[0].address | split("/")[0]' "$T/result-a$flag")" 80)"
		check "$c" "a$flag"
		del "a$flag" "$c"
		del "b$flag" "$c"
	done
}

@test "one mode and flag a master: another is refused with the holder's name, and nobody's is changed" {
	only_cnibox "changes the mode of all"
	local c
	add c1 "$(conf)"
	netns c2
	fails 102 '"m0" is the master of an ipvlan link in mode l2, flag bridge: net1 c1 eth0' ADD ipvlan c2 <<<"$(l3)"
	fails 102 'so l2, private cannot be beside it' ADD ipvlan c2 <<<"$(conf '"flag":"private"')"
	no_link c2
	check "$(conf)" c1
	same leases 10.1.0.2 "$(leases)"
	add c2 "$(conf)"
	del c1 "$(conf)"
	fails 102 'net1 c2 eth0' ADD ipvlan c1 <<<"$(l3)"
	del c2 "$(conf)"
	# A link of the node itself, and one that somebody else has made in a container.
	host ip link add link m0 name own type ipvlan mode l3s
	fails 102 'mode l3s, flag bridge: link "own"' ADD ipvlan c1 <<<"$(conf)"
	host ip link del own
	netns c3
	host ip link add link m0 name theirs netns c3 type ipvlan mode l3
	fails 102 'mode l3, flag bridge: link "theirs"' ADD ipvlan c1 <<<"$(conf)"
	inside c3 ip link del theirs
	add c1 "$(l3)"
}

@test "a master with macvlan links says whose they are" {
	only_cnibox "says busy"
	need_applet macvlan
	netns c1
	netns c2
	ok ADD macvlan c1 <<<"$(conf | sed 's/ipvlan/macvlan/')"
	fails 100 'is the master of a macvlan link: net1 c1 eth0' ADD ipvlan c2 <<<"$(conf)"
	no_link c2
}

# ---- master, keys, lists ----------------------------------------------------------------------

@test "linkInContainer" {
	only_cnibox "newer than release 1.1.1"
	local c
	c=$(conf '"linkInContainer":true')
	netns c1
	host ip link set m0 netns c1
	inside c1 ip link set m0 up
	ok ADD ipvlan c1 net1 <<<"$c"
	link_in c1 .link m0 net1
	printf '%s' "$output" >"$T/result-c1"
	ok CHECK ipvlan c1 net1 <<<"$(with_prev "$c" c1)"
	fails 102 'mode l2, flag bridge: net1 c1 net1' ADD ipvlan c1 net2 <<<"$(conf '"linkInContainer":true,"mode":"l3"')"
	del c1 "$c" net1
	same links m0 "$(links c1)"
}

@test "chained: the addresses, routes and interface of the list so far" {
	local c
	c=$(bare '"mtu":1400,"prevResult":{"cniVersion":"1.0.0","interfaces":[{"name":"m0"}],
		"ips":[{"address":"10.1.0.9/24","gateway":"10.1.0.254","interface":0}],"routes":[{"dst":"0.0.0.0/0"}]}')
	add c1 "$c"
	is '[[.interfaces[].name], .ips, .routes]' \
		'[["eth0"],[{"interface":0,"address":"10.1.0.9/24","gateway":"10.1.0.254"}],[{"dst":"0.0.0.0/0"}]]'
	link_in c1 '[.mtu, .addr_info[0].local]' '[1400,"10.1.0.9"]'
	serve far 80
	same "c1 to the far side" "far 10.1.0.9" "$(ask c1 tcp 10.1.0.254 80)"
	if is_cnibox; then
		c=$(bare '"mtu":1400')
		check "$c" c1
		inside c1 ip addr add 10.1.0.10/24 dev eth0
		inside c1 ip addr del 10.1.0.9/24 dev eth0
		mismatch 'Failed to match addr 10.1.0.9' "$c" c1
	fi
	del c1 "$c"
	no_link c1
}

@test "the names of the node's links are no obstacle, nor is the same MAC address" {
	host ip link add eth0 type bridge
	add c1 "$(conf)"
	link_in c1 '[.linkinfo.info_kind, (.flags | contains(["UP"]))]' '["ipvlan",true]'
	netns c2
	ok ADD ipvlan c2 <<<"$(conf '"mac":"02:00","runtimeConfig":{"mac":"02:00:00:00:00:01"}')"
	link_in c2 .address "$(<"/proc/$HOLDER/root/sys/class/net/m0/address")"
}

@test "where IPAM gives IPv6 addresses they are usable at once and routers do not add any; mtu in the result" {
	only_cnibox "takes what comes"
	VERSION=1.1.0
	add c1 "$(bare '"master":"m0","mtu":1300,"ipam":{"type":"host-local","subnet":"fd00:1::/64"}')"
	is '.interfaces[0].mtu' 1300
	same accept_ra 0 "$(inside c1 cat /proc/sys/net/ipv6/conf/eth0/accept_ra)"
	inside_is c1 '[.[0].addr_info[] | select(.scope == "global") | .local, .tentative]' '["fd00:1::2",null]' \
		ip -j -6 addr show dev eth0
}

# ---- what fails, DEL, CHECK -------------------------------------------------------------------

@test "a failing ADD leaves neither link nor lease" {
	only_cnibox "leaves both"
	netns c1
	fails 100 'failed to add route' ADD ipvlan c1 <<<"$(conf '' '' '{"dst":"10.7.0.0/16","gw":"172.31.0.1"}')"
	same links '' "$(links c1)"
	nothing_left m0
}

@test "DEL without master, under another name, and of the right one; in a namespace that is gone" {
	only_cnibox "goes by the name, and wants the master"
	add c1 "$(conf)"
	add c1 "$(conf)" eth1
	inside c1 ip -batch - <<-'END'
		link set eth0 down
		link set eth0 name moved0
		link set eth1 down
		link set eth1 name eth0
	END
	del c1 "$(bare '"ipam":{"type":"host-local","subnet":"10.1.0.0/24"}')"
	same links eth0 "$(links c1)"
	same leases 10.1.0.3 "$(leases)"
	host ip netns del c1
	del c1 "$(conf)" eth1
	nothing_left m0
}

@test "CHECK: mode, flag, MTU, master, state, and what it must pass" {
	add c1 "$(conf '"mtu":1400')"
	check "$(conf '"mtu":1400')" c1
	host ip link add own link m0 type ipvlan mode l3
	mismatch 'mode l3 does not match expected value: l2' "$(conf)" c1
	only_cnibox "looks at the mode only"
	host ip link set own type ipvlan mode l2 private
	mismatch 'flag private does not match expected value: bridge' "$(conf)" c1
	host ip link set own type ipvlan mode l2 bridge
	check "$(bare '"ipam":{"type":"host-local","subnet":"10.1.0.0/24"}')" c1
	inside c1 ip link set eth0 mtu 1300
	mismatch 'MTU is 1300, not 1400' "$(conf '"mtu":1400')" c1
	check "$(conf)" c1
	mismatch 'its master is not "lo"' "$(conf '"master":"lo"')" c1
	inside c1 ip link set eth0 down
	mismatch 'eth0 is down' "$(conf)" c1
}

@test "GC removes links and leases of what is stale; STATUS looks for the master" {
	only_cnibox "has neither"
	VERSION=1.1.0
	add c1 "$(conf)"
	add c2 "$(conf)"
	inside c1 ip -batch - <<<$'link set eth0 down\nlink set eth0 name moved0'
	ok GC ipvlan '' <<<"$(conf '"cni.dev/valid-attachments":[{"containerID":"c2","ifname":"eth0"}]')"
	same "links of c1" '' "$(links c1)"
	same leases 10.1.0.3 "$(leases)"
	check "$(conf)" c2
	ok STATUS ipvlan '' <<<"$(conf)"
	fails 50 m9 STATUS ipvlan '' <<<"$(conf '"master":"m9"')"
	ok STATUS ipvlan '' <<<"$(bare)"
}

@test "what the Go plugin made: CHECK and DEL; and the other way round" {
	only_cnibox "is about both"
	[ -x "$GO_DIR/ipvlan" ] && [ ! -L "$GO_DIR/ipvlan" ] || skip "no Go plugins in $GO_DIR"
	local c
	c=$(conf)
	netns c1
	CNI_PATH=$GO_DIR ok ADD "$GO_DIR/ipvlan" c1 <<<"$c"
	printf '%s' "$output" >"$T/result-c1"
	check "$c" c1
	netns c2
	fails 102 'mode l2, flag bridge' ADD ipvlan c2 <<<"$(l3)"
	del c1 "$c"
	no_link c1
	add c2 "$c"
	CNI_PATH=$GO_DIR ok CHECK "$GO_DIR/ipvlan" c2 <<<"$(with_prev "$c" c2)"
	CNI_PATH=$GO_DIR ok DEL "$GO_DIR/ipvlan" c2 <<<"$c"
	no_link c2
	nothing_left m0
}
