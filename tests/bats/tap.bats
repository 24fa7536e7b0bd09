# tap: a link of the container whose other end is a program. Debian's Go plugins (1.1.1) have none.

load helpers

setup_file() {
	cc -O1 -o "$BATS_FILE_TMPDIR/guest" "${BATS_TEST_FILENAME%/*}/tap-guest.c"
}

setup() {
	need_applet tap host-local
	[ -c /dev/net/tun ] || skip "no /dev/net/tun"
	sandbox
	netns c1
	GUEST=$BATS_FILE_TMPDIR/guest
}
teardown() { sandbox_end; }

# conf [KEYS]; l3 [KEYS]: with addresses from 10.1.0.0/24.
conf() {
	jq -nc --argjson keys "${1:-"{}"}" --arg v "${VERSION:-1.0.0}" '{cniVersion: $v, name: "net1", type: "tap"} * $keys'
}
l3() { conf "$(jq -nc --argjson keys "${1:-"{}"}" '{ipam: {type: "host-local", subnet: "10.1.0.0/24"}} * $keys')"; }
add() {
	ok ADD tap "$1" "${3:-eth0}" <<<"$2"
	printf '%s' "$output" >"$T/result-$1"
}
del() { ok DEL tap "$1" "${3:-eth0}" <<<"$2"; }
with_prev() { jq -c --slurpfile r "$T/result-c1" ".prevResult = (\$r[0] | ${2:-.})" <<<"$1"; }
check() { ok CHECK tap c1 <<<"$(with_prev "$1")"; }
mismatch() { fails 101 "$1" CHECK tap c1 <<<"$(with_prev "$2" "${3:-.}")"; }
link_in() { inside_is c1 ".[0] | $1" "$2" ip -d -j link show dev "${3:-eth0}"; }
links() { inside c1 ip -br link | sed 's/[@ ].*//' | grep -vx lo | sort | xargs; }
leases() { host sh -c 'ls /var/lib/cni/networks/net1 2>/dev/null | grep -v -e ^lock -e ^last' | xargs; }
nothing_there() {
	same "in the container" "" "$(links)"
	same leases "" "$(leases)"
	nothing_left
}
# guest IP [multi]: behind eth0 in c1; returns when it has opened it.
guest() {
	spawn c1 "$GUEST" eth0 "$@"
	wait_for 60 grep -qx open "$T/spawn.log"
}

@test "the tap, its addresses, and a guest behind it that answers" {
	local c
	c=$(l3 '{"ipam":{"routes":[{"dst":"10.9.0.0/16","gw":"10.1.0.9"}]}}')
	add c1 "$c"
	is '[.interfaces[] | [.name, .sandbox]]' '[["eth0","/run/netns/c1"]]'
	is '[.ips[] | [.address, .interface]]' '[["10.1.0.2/24",0]]'
	link_in '[.linkinfo.info_kind, .linkinfo.info_data.type, .linkinfo.info_data.persist, .linkinfo.info_data.multi_queue]' \
		'["tun","tap",true,false]'
	link_in .address "$(jq .interfaces[0].mac <<<"$output")"
	guest 10.1.0.9
	wait_for 60 inside c1 ping -c 1 -W 1 10.1.0.9
	check "$c"
	del c1 "$c"
	nothing_there
}

@test "multiQueue: with it and only with it a guest may open it so" {
	add c1 "$(l3 '{"multiQueue":true}')"
	link_in .linkinfo.info_data.multi_queue true
	run inside c1 timeout 5 "$GUEST" eth0 10.1.0.9
	[ "$status" -eq 1 ]
	guest 10.1.0.9 multi
	wait_for 60 inside c1 ping -c 1 -W 1 10.1.0.9
}

@test "mtu and mac, also with owner and group; all are in the result of 1.1.0" {
	VERSION=1.1.0
	local c k
	for k in '{}' '{"owner":1000,"group":0}'; do
		c=$(conf "$(jq -c '{mtu: 1400, mac: "02:00:00:00:00:07"} + .' <<<"$k")")
		add c1 "$c"
		is '[.interfaces[0] | .mac, .mtu]' '["02:00:00:00:00:07",1400]'
		link_in '[.address, .mtu]' '["02:00:00:00:00:07",1400]'
		check "$c"
		del c1 "$c"
	done
}

@test "owner and group: 0 is one, and absent is none" {
	add c1 "$(conf '{"owner":0,"group":107}')"
	same ids "0 107" "$(inside c1 ip netns exec c1 cat /sys/class/net/eth0/{owner,group} | xargs)"
	add c1 "$(conf)" eth1
	same ids "-1 -1" "$(inside c1 ip netns exec c1 cat /sys/class/net/eth1/{owner,group} | xargs)"
}

@test "MAC address: runtimeConfig, then CNI_ARGS, then the config" {
	local c
	c=$(conf '{"mac":"02:00:00:00:00:01"}')
	CNI_ARGS='IgnoreUnknown=1;MAC=02:00:00:00:00:02' add c1 "$c"
	link_in .address 02:00:00:00:00:02
	del c1 "$c"
	c=$(jq -c '.runtimeConfig.mac = "02:00:00:00:00:03"' <<<"$c")
	CNI_ARGS='MAC=02:00:00:00:00:02' add c1 "$c"
	link_in .address 02:00:00:00:00:03
	CNI_ARGS='K8S=1' fails any 'unknown args' ADD tap c1 eth1 <<<"$c"
	# To DEL they are nothing.
	CNI_ARGS='K8S=1;x' del c1 "$c"
	nothing_there
}

@test "bridge: a port of the container's bridge, which guest and container share" {
	local c
	inside c1 ip link add br0 up type bridge
	inside c1 ip addr add 10.5.0.1/24 dev br0
	c=$(conf '{"bridge":"br0"}')
	add c1 "$c"
	link_in .master br0
	guest 10.5.0.9
	wait_for 60 inside c1 ping -c 1 -W 1 10.5.0.9
	check "$c"
	inside c1 ip link set eth0 nomaster
	mismatch 'not a port of bridge br0' "$c"
	del c1 "$c"
	same "in the container" br0 "$(links)"
}

@test "bridge: none of that name, or no bridge: nothing is left" {
	inside c1 ip link add v0 type veth peer name v1
	fails 7 'failed to get bridge' ADD tap c1 <<<"$(conf '{"bridge":"br0"}')"
	fails 7 'failed to get bridge' ADD tap c1 <<<"$(conf '{"bridge":"v0"}')"
	same "in the container" "v0 v1" "$(links)"
}

@test "the name is taken, by a tap or another link: an error, and it stays as it was" {
	inside c1 ip link add eth0 type bridge
	fails 102 'exists' ADD tap c1 <<<"$(l3)"
	link_in '[.linkinfo.info_kind, (.flags | contains(["UP"]))]' '["bridge",false]'
	inside c1 ip link del eth0
	inside c1 ip tuntap add eth0 mode tap
	fails 102 'exists' ADD tap c1 <<<"$(l3)"
	link_in '.flags | contains(["UP"])' false
	same leases "" "$(leases)"
}

@test "what is wrong in the config is refused before anything is made" {
	local k
	for k in '{"mtu":67}' '{"mac":"02:00"}' '{"owner":-1}' '{"group":"root"}' '{"owner":4294967296}' '{"multiQueue":1}' \
		'{"selinuxContext":7}' '{"bridge":{}}' '{"mac":"01:00:00:00:00:01"}'; do
		fails 7 '' ADD tap c1 <<<"$(conf "$k")"
	done
	nothing_there
}

@test "selinuxContext: where the kernel refuses it, nothing is made" {
	[ ! -e /sys/fs/selinux/enforce ] || skip "this machine has SELinux"
	fails 100 'failed set socket label' ADD tap c1 <<<"$(l3 '{"selinuxContext":"system_u:system_r:container_t:s0"}')"
	nothing_there
}

@test "selinuxContext: the child that makes the tap" {
	inside c1 env -i bash -c 'exec -a tap "$1" make eth0 multi 5 6' tap "$CNIBOX_BUILD/cnibox"
	link_in '[.linkinfo.info_data | .type, .multi_queue, .persist]' '["tap",true,true]'
	run inside c1 env -i bash -c 'exec -a tap "$1" make eth0 multi 5 6' tap "$CNIBOX_BUILD/cnibox"
	[ "$status" -eq 17 ] # EEXIST
	del c1 "$(conf)"
	nothing_there
}

@test "no /dev/net/tun: ADD and STATUS say so" {
	host mount -t tmpfs t /dev/net
	fails 100 'there is no /dev/net/tun' ADD tap c1 <<<"$(l3)"
	fails 50 '/dev/net/tun cannot be opened' STATUS tap c1 <<<"$(VERSION=1.1.0 l3)"
	nothing_there
}

@test "a failing ADD leaves neither tap nor lease: IPAM, a route, printing" {
	fails any '' ADD tap c1 <<<"$(l3 '{"ipam":{"subnet":"10.1.0.0/33"}}')"
	nothing_there
	fails 100 'failed to add route' ADD tap c1 <<<"$(l3 '{"ipam":{"routes":[{"dst":"10.7.0.0/16","gw":"172.31.0.1"}]}}')"
	nothing_there
	CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 CNI_PATH=$CNI_PLUGIN_DIR \
		run host sh -c 'exec "$1" >/dev/full' tap "$CNI_PLUGIN_DIR/tap" <<<"$(l3)"
	[ "$status" -eq 1 ]
	nothing_there
}

@test "DEL: twice, without namespace, where it is gone, under another name, with a guest still there" {
	del c1 "$(l3)"
	add c1 "$(l3)"
	guest 10.1.0.9
	inside c1 ip link set eth0 down
	inside c1 ip link set eth0 name moved0
	del c1 "$(l3)"
	nothing_there
	add c1 "$(l3)"
	NETNS='' del c1 "$(l3)"
	same leases "" "$(leases)"
	host ip netns del c1
	del c1 "$(l3)"
	nothing_left
}

@test "DEL deletes a tap without a mark by its name, and nothing of another kind" {
	inside c1 ip tuntap add eth0 mode tap
	del c1 "$(conf)"
	same "in the container" "" "$(links)"
	inside c1 ip link add eth0 type bridge
	del c1 "$(conf)"
	same "in the container" eth0 "$(links)"
}

@test "CHECK sees another kind, another MAC address, that it is down or gone, and a missing address" {
	add c1 "$(l3)"
	mismatch Mac "$(l3)" '.interfaces[0].mac = "02:00:00:00:00:01"'
	inside c1 ip addr del 10.1.0.2/24 dev eth0
	mismatch addr "$(l3)"
	inside c1 ip link set eth0 down
	mismatch down "$(l3)"
	inside c1 ip link del eth0
	mismatch 'not found' "$(l3)"
	inside c1 ip link add eth0 type bridge
	mismatch 'not of type tun' "$(l3)"
}

@test "STATUS and GC are IPAM's, too" {
	VERSION=1.1.0
	ok STATUS tap c1 <<<"$(l3)"
	fails any '' STATUS tap c1 <<<"$(l3 '{"ipam":{"subnet":"nonsense"}}')"
	add c1 "$(l3)"
	ok GC tap c1 <<<"$(jq -c '.["cni.dev/valid-attachments"] = [{containerID: "c1", ifname: "eth0"}]' <<<"$(l3)")"
	same leases 10.1.0.2 "$(leases)"
	ok GC tap c1 <<<"$(l3)"
	same leases "" "$(leases)"
}
