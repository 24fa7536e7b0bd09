# macvlan: routers, what fails and what is left then, DEL, CHECK, STATUS, GC, and both implementations
# on one attachment. The rest is in macvlan.bats.

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

# ---- routers ----------------------------------------------------------------------------------

# router PREFIX: the far side advertises PREFIX::/64 five times a second.
router() {
	local ra='\x86\0\0\0\x40\0\x07\x08\0\0\0\0\0\0\0\0\x03\x04\x40\xc0\0\x01\x51\x80\0\0\x38\x40\0\0\0\0'
	wait_for 5 settled far
	spawn far bash -c "while sleep 0.2; do
		printf '$ra$1\0\0\0\0\0\0\0\0\0\0' |
			socat -u - 'IP6-SENDTO:[ff02::1%br0]:58,setsockopt-int=41:18:255'
	done"
}

@test "where IPAM gives an IPv6 address routers do not add any; elsewhere they may" {
	only_cnibox "takes what comes"
	router '\x20\x01\x0d\xb8\0\x01'
	add c1 "$(l3)"
	add c2 "$(dual)"
	same "accept_ra of c1" 1 "$(inside c1 cat /proc/sys/net/ipv6/conf/eth0/accept_ra)"
	same "accept_ra of c2" 0 "$(inside c2 cat /proc/sys/net/ipv6/conf/eth0/accept_ra)"
	has_slaac() { addrs "$1" | grep -q 2001:db8:1:; }
	wait_for 10 has_slaac c1
	same "addresses of c2" "10.1.0.3/24 fd00:1::2/64" "$(addrs c2)"
	same "IPv6 default routes of c2" '' "$(inside c2 ip -6 route show default)"
}

@test "slaacWait: the address that a router gives is in the result, and CHECK looks for it" {
	only_cnibox "does not know the key"
	local c own
	router '\x20\x01\x0d\xb8\0\x01'
	c=$(l3 '{"slaacWait":20}')
	add c1 "$c"
	is '.ips | length' 2
	is '.ips[0].address' 10.1.0.2/24
	holds '.ips[1] | (.address | test("^2001:db8:1:.*/64$")) and .interface == 0'
	own=$(jq -r '.ips[1].address' <<<"$output")
	same addresses "10.1.0.2/24 $own" "$(addrs c1)"
	check "$c" c1
	inside c1 sh -c 'echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_ra'
	inside c1 ip addr del "$own" dev eth0
	mismatch 'Failed to match addr 2001:db8:1:' "$c" c1
	# Without IPAM, and where IPv6 is switched off by default.
	netns c2
	inside c2 sh -c 'echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; echo 0 >/proc/sys/net/ipv6/conf/default/accept_ra'
	c=$(jq -c 'del(.ipam)' <<<"$c")
	add c2 "$c"
	is '.ips | length' 1
	check "$c" c2
	inside c2 sh -c 'echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_ra'
	inside c2 ip addr del "$(jq -r '.ips[0].address' <<<"$output")" dev eth0 || :
	inside c2 ip -6 addr flush dev eth0 scope global
	mismatch 'Failed to match addr 2001:db8:1:' "$c" c2
}

@test "slaacWait: no router, no container" {
	only_cnibox "does not know the key"
	netns c1
	fails 11 'no router has given "eth0" an IPv6 address in 1 seconds' ADD macvlan c1 <<<"$(l3 '{"slaacWait":1}')"
	no_link c1
	same leases '' "$(leases)"
}

# ---- what fails -------------------------------------------------------------------------------

@test "a failing ADD leaves nothing: IPAM gives no address, a route that the kernel refuses, no IPAM" {
	netns c1
	fails any 'missing IP config' ADD macvlan c1 <<<"$(fake '{"ips":[]}')"
	only_cnibox "leaves the link, or the lease"
	same "IPAM was asked" "ADD DEL" "$(xargs <"$T/fake.log")"
	no_link c1
	fails 100 'failed to add route' ADD macvlan c1 \
		<<<"$(l3 '{"ipam":{"routes":[{"dst":"10.7.0.0/16","gw":"172.31.0.1"}]}}')"
	no_link c1
	same leases '' "$(leases)"
	fails 999 'failed to find plugin "nobody"' ADD macvlan c1 <<<"$(l3 | jq -c '.ipam = {type: "nobody"}')"
	no_link c1
	nothing_left m0
}

@test "a failing ADD leaves nothing: the result cannot be printed" {
	only_cnibox "leaves the link"
	netns c1
	CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 CNI_PATH=$CNI_PLUGIN_DIR \
		run host sh -c 'exec "$1" >/dev/full' macvlan "$CNI_PLUGIN_DIR/macvlan" <<<"$(l3)"
	[ "$status" -eq 1 ]
	no_link c1
	same leases '' "$(leases)"
}

@test "the interface's name is taken: refused, and the other one stays" {
	netns c1
	inside c1 ip link add eth0 type bridge
	fails 102 'exists' ADD macvlan c1 <<<"$(l3)"
	link_in c1 .linkinfo.info_kind bridge
	same "links" "eth0 lo" "$(inside c1 ip -br link | awk '{print $1}' | sort | xargs)"
	only_cnibox "deletes it"
	ok DEL macvlan c1 <<<"$(l3)"
	link_in c1 .linkinfo.info_kind bridge
}

@test "a second ADD of a living attachment fails and leaves it alone" {
	add c1 "$(l3)"
	cni ADD macvlan c1 <<<"$(l3)"
	[ "$status" -eq 1 ]
	check "$(l3)" c1
	same lease 10.1.0.2 "$(leases)"
}

@test "a master that is a port of a bridge cannot have one" {
	host ip link add br9 type bridge
	host ip link set m0 master br9
	netns c1
	fails 100 'failed to create macvlan' ADD macvlan c1 <<<"$(l3)"
	no_link c1
}

# ---- DEL --------------------------------------------------------------------------------------

@test "DEL without the namespace, the master or a usable config; and again" {
	local c
	c=$(l3)
	add c1 "$c"
	del c1 "$c"
	same leases '' "$(leases)"
	del c1 "$c"
	host ip netns del c1
	del c1 "$c"
	NETNS='' ok DEL macvlan c1 <<<"$c"
	only_cnibox "needs the master"
	add c1 "$c"
	host ip link del m0
	del c1 "$c"
	same leases '' "$(leases)"
	host ip netns del c1
	host touch /run/netns/c1
	del c1 "$c"
	host rm /run/netns/c1
	host ip link add m0 type veth peer name eth0 netns far
	host ip link set m0 up
	add c2 "$c"
	CNI_ARGS='X=y;' ok DEL macvlan c2 <<<"$(jq -c '.mode = "x" | .mtu = 70000 | .master = 5' <<<"$c")"
	no_link c2
	same leases '' "$(leases)"
}

@test "DEL finds its link under another name, and leaves another attachment's" {
	only_cnibox "goes by the name"
	local c
	c=$(l3)
	add c1 "$c"
	add c1 "$c" eth1
	inside c1 sh -c 'ip link set eth0 down && ip link set eth0 name moved0 &&
		ip link set eth1 down && ip link set eth1 name eth0'
	del c1 "$c"
	same "links" "eth0 lo" "$(inside c1 ip -br link | sed 's/@.*//' | awk '{print $1}' | sort | xargs)"
	same lease 10.1.0.3 "$(leases)"
	del c1 "$c" eth1
	same "links" "lo" "$(inside c1 ip -br link | awk '{print $1}' | xargs)"
	nothing_left m0
}

@test "a DEL of IPAM that fails does not keep the link" {
	only_cnibox "stops"
	local c
	c=$(fake '{"ips":[{"address":"10.1.0.5/24"}]}')
	add c1 "$c"
	printf '#!/bin/sh\ncat >/dev/null\necho '\''{"code":77,"msg":"no"}'\''\nexit 1\n' >"$T/bin/fake"
	fails 77 no DEL macvlan c1 <<<"$c"
	no_link c1
}

# ---- CHECK ------------------------------------------------------------------------------------

@test "CHECK: the mode" {
	add c1 "$(l3)"
	inside c1 ip link set eth0 type macvlan mode vepa
	mismatch 'mode vepa does not match expected value: bridge' "$(l3)" c1
}

@test "CHECK: kind, MAC address, prevResult, and that it is there" {
	local c
	c=$(l3)
	add c1 "$c"
	fails any 'prevResult' CHECK macvlan c1 <<<"$c"
	mismatch "doesn't match configured netns|does not match" "$c" c1 '.interfaces[0].sandbox = "/run/netns/c9"'
	inside c1 ip link set eth0 down
	inside c1 ip link set eth0 address 02:00:00:00:00:99 up
	mismatch "Mac" "$c" c1
	inside c1 ip link del eth0
	mismatch 'not found' "$c" c1
	inside c1 ip link add eth0 type bridge
	mismatch 'not of type macvlan' "$c" c1
}

@test "CHECK: state, MTU, queue length, master, address and route" {
	only_cnibox "looks at neither state, MTU nor master"
	local c
	c=$(l3 '{"mtu":1400,"bcqueuelen":500}')
	add c1 "$c"
	inside c1 ip link set eth0 mtu 1300
	mismatch 'MTU is 1300, not 1400' "$c" c1
	# Somebody later in the list has changed it.
	ok CHECK macvlan c1 <<<"$(with_prev "$c" c1 '.interfaces[0].mtu = 1300')"
	inside c1 ip link set eth0 mtu 1400
	check "$c" c1
	inside c1 ip link set eth0 type macvlan bcqueuelen 600
	mismatch 'bcqueuelen is 600, not 500' "$c" c1
	inside c1 ip link set eth0 type macvlan bcqueuelen 500
	inside c1 ip route del default
	mismatch 'Expected Route 0.0.0.0/0' "$c" c1
	inside c1 ip route add default via 10.1.0.254
	host ip link add m1 type veth peer name m1far
	mismatch 'its master is not "m1"' "$(jq -c '.master = "m1"' <<<"$c")" c1
	mismatch 'its master is not "lo"' "$(jq -c '.master = "lo" | .linkInContainer = true' <<<"$c")" c1
	fails 7 'Link not found' CHECK macvlan c1 <<<"$(with_prev "$(jq -c '.master = "m9"' <<<"$c")" c1)"
	inside c1 ip link set eth0 down
	mismatch 'eth0 is down' "$c" c1
}

@test "CHECK: a macvlan link as master, and an altname of the master" {
	add c1 "$(l3)"
	host ip link add link m0 name mv type macvlan mode bridge
	host ip link set mv up
	add c2 "$(l3 '{"master":"mv"}')"
	check "$(l3 '{"master":"mv"}')" c2
	only_cnibox "1.1.1 does not know alternative names"
	host ip link property add dev m0 altname a-very-long-name-of-m0
	add c3 "$(l3 '{"master":"a-very-long-name-of-m0"}')"
	check "$(l3 '{"master":"a-very-long-name-of-m0"}')" c3
}

# ---- STATUS, GC -------------------------------------------------------------------------------

@test "STATUS: the master, IPAM's answer, the config" {
	only_cnibox "1.1.1 does not know the verb"
	export VERSION=1.1.0
	ok STATUS macvlan '' <<<"$(l3)"
	fails 50 'm9' STATUS macvlan '' <<<"$(l3 '{"master":"m9"}')"
	ok STATUS macvlan '' <<<"$(l3 '{"master":"m9","linkInContainer":true}')"
	fails 50 'no default route' STATUS macvlan '' <<<"$(l3 '{"master":""}')"
	fails 7 'unknown macvlan mode' STATUS macvlan '' <<<"$(l3 '{"mode":"x"}')"
	fails 7 'invalid CIDR address: 10.1.0.0/33' STATUS macvlan '' <<<"$(l3 '{"ipam":{"subnet":"10.1.0.0/33"}}')"
	host ip addr add 10.1.0.253/24 dev m0
	host ip route add default via 10.1.0.254
	ok STATUS macvlan '' <<<"$(l3 '{"master":""}')"
}

@test "GC removes links, also renamed ones, and leases of what is stale, and nothing else" {
	only_cnibox "has no GC"
	local c
	export VERSION=1.1.0
	c=$(l3)
	add c1 "$c"
	add c2 "$c"
	add c1 "$c" eth1
	add c3 "$(jq -c '.name = "net2"' <<<"$c")"
	inside c1 sh -c 'ip link set eth0 down; ip link set eth0 name moved0'
	ok GC macvlan '' <<<"$(jq -c '.["cni.dev/valid-attachments"] = [{containerID: "c2", ifname: "eth0"},
		{containerID: "c1", ifname: "eth1"}]' <<<"$c")"
	same "links of c1" "eth1 lo" "$(inside c1 ip -br link | sed 's/@.*//' | awk '{print $1}' | sort | xargs)"
	same leases "10.1.0.3 10.1.0.4" "$(leases)"
	check "$c" c2
	ok GC macvlan '' <<<"$c"
	no_link c2
	no_link c1 eth1
	inside c3 ip link show eth0
	same leases '' "$(leases)"
}

# ---- both -------------------------------------------------------------------------------------

@test "what the Go plugin made: CHECK and DEL; and the other way round" {
	only_cnibox "is about both"
	need_go
	local c
	c=$(l3)
	netns c1
	CNI_PATH=$GO_DIR ok ADD "$GO_DIR/macvlan" c1 <<<"$c"
	printf '%s' "$output" >"$T/result-c1-eth0"
	check "$c" c1
	del c1 "$c"
	no_link c1
	same leases '' "$(leases)"
	add c2 "$c"
	CNI_PATH=$GO_DIR ok CHECK "$GO_DIR/macvlan" c2 <<<"$(with_prev "$c" c2)"
	CNI_PATH=$GO_DIR ok DEL "$GO_DIR/macvlan" c2 <<<"$c"
	no_link c2
	nothing_left m0
}
