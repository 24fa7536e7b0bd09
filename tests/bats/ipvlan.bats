# ipvlan, as far as a kernel without such links can show it. The rest is in tests/vm/ipvlan.bats.

load helpers
load ipvlan

setup() {
	need_applet ipvlan host-local
	sandbox
	make_master
	netns c1
}
teardown() { sandbox_end; }

lacks_ipvlan() {
	host ip link add link m0 name probe type ipvlan 2>/dev/null || return 0
	host ip link del probe
	skip "this kernel has ipvlan"
}

@test "what is wrong in the config is refused before anything is made" {
	fails 7 'unknown ipvlan mode' ADD ipvlan c1 <<<"$(conf '"mode":"l4"')"
	fails 7 'Link not found|failed to lookup master' ADD ipvlan c1 <<<"$(conf '"master":"m9"')"
	same leases '' "$(leases)"
	only_cnibox "finds out late, or does not know the key"
	fails 7 'unknown ipvlan flag: "public"' ADD ipvlan c1 <<<"$(conf '"flag":"public"')"
	fails 7 'mtu 67: invalid argument' ADD ipvlan c1 <<<"$(conf '"mtu":67')"
	fails 7 'invalid MTU 1501, must be \[0, master MTU\(1500\)\]' ADD ipvlan c1 <<<"$(conf '"mtu":1501')"
	same leases '' "$(leases)"
	nothing_left m0
}

@test "neither IPAM nor addresses of the list so far: refused" {
	only_cnibox "leaves the link"
	fails 7 'no plugin name provided' ADD ipvlan c1 <<<"$(bare '"master":"m0"')"
	fails 7 'no plugin name provided' ADD ipvlan c1 \
		<<<"$(bare '"master":"m0","prevResult":{"cniVersion":"1.0.0","interfaces":[{"name":"m0"}]}')"
	no_link c1
}

@test "without master: one interface of the list so far, or else the default route's" {
	fails 7 'no default route interface' ADD ipvlan c1 <<<"$(bare '"ipam":{"type":"host-local","subnet":"10.1.0.0/24"}')"
	fails 7 'chained master failure' ADD ipvlan c1 <<<"$(bare '"ipam":{"type":"host-local","subnet":"10.1.0.0/24"},
		"prevResult":{"cniVersion":"1.0.0","interfaces":[{"name":"m0"},{"name":"m1"}]}')"
	same leases '' "$(leases)"
}

@test "DEL of what was never there, without a namespace, with a config that ADD refuses, succeeds" {
	ok DEL ipvlan c1 <<<"$(conf)"
	NETNS='' ok DEL ipvlan c1 <<<"$(conf)"
	host ip netns del c1
	ok DEL ipvlan c1 <<<"$(conf)"
	only_cnibox "stops at such a file, looks for the master, and reads the keys"
	host touch /run/netns/c1
	ok DEL ipvlan c1 <<<"$(conf)"
	host rm /run/netns/c1
	netns c1
	ok DEL ipvlan c1 <<<"$(bare '"mode":7,"mtu":-70000,"master":"m9"')"
	ok DEL ipvlan c1 <<<"$(bare)"
}

@test "the name is taken: ADD says so and leaves the other interface, and so does DEL" {
	inside c1 ip link add eth0 type veth peer name other
	fails 102 'exists|failed to create ipvlan' ADD ipvlan c1 <<<"$(conf)"
	inside c1 ip link show eth0
	only_cnibox "deletes whatever has the name"
	ok DEL ipvlan c1 <<<"$(conf)"
	inside c1 ip link show eth0
	nothing_left m0
}

@test "a kernel without ipvlan: ADD and STATUS say so, and nothing is left" {
	lacks_ipvlan
	only_cnibox "the Go plugin says operation not supported"
	fails 100 'failed to create ipvlan.*the kernel lacks the kind \(module ipvlan\)' ADD ipvlan c1 <<<"$(conf)"
	VERSION=1.1.0 fails 50 'the kernel lacks links of kind ipvlan \(module ipvlan\)' STATUS ipvlan c1 <<<"$(VERSION=1.1.0 conf)"
	no_link c1
	nothing_left m0
}
