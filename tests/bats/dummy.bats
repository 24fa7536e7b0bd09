# dummy, as far as a kernel without such interfaces can show it. The rest is in tests/vm/dummy.bats.

load helpers

setup() {
	need_applet dummy host-local
	sandbox
	netns c1
}
teardown() { sandbox_end; }

# conf [KEYS]
conf() {
	jq -nc --argjson keys "${1:-"{}"}" --arg v "${VERSION:-1.0.0}" '{cniVersion: $v, name: "net1", type: "dummy",
		ipam: {type: "host-local", subnet: "10.7.0.0/24"}} * $keys'
}
no_dummy() { ! host ip link add probe type dummy 2>/dev/null || skip "this kernel has dummy interfaces"; }

@test "ipam.type is needed, but not by DEL" {
	local c='{"cniVersion":"1.0.0","name":"net1","type":"dummy"}'
	fails 7 'no plugin name provided' ADD dummy c1 <<<"$c"
	fails 7 'no plugin name provided' CHECK dummy c1 \
		<<<"$(jq -c '.prevResult = {cniVersion: "1.0.0"}' <<<"$c")"
	only_cnibox "the Go plugin's DEL fails"
	ok DEL dummy c1 <<<"$c"
	fails 7 'no plugin name provided' STATUS dummy c1 <<<"$(jq -c '.cniVersion = "1.1.0"' <<<"$c")"
}

@test "what is wrong in the config is refused before anything is asked" {
	only_cnibox "the Go plugin knows neither mtu nor mac"
	fails 7 'mtu 67: invalid argument' ADD dummy c1 <<<"$(conf '{"mtu":67}')"
	fails 7 'address 02:00: invalid MAC address' ADD dummy c1 <<<"$(conf '{"mac":"02:00"}')"
	# CNI_ARGS are not read for it.
	CNI_ARGS='whatever=1;x' fails 7 'address 02:00: invalid MAC address' ADD dummy c1 <<<"$(conf '{"mac":"02:00"}')"
	fails 7 'multicast' ADD dummy c1 <<<"$(conf '{"runtimeConfig":{"mac":"01:00:00:00:00:01"}}')"
	nothing_left
}

@test "DEL of what was never there, and where the namespace is gone, succeeds" {
	ok DEL dummy c1 <<<"$(conf)"
	NETNS='' ok DEL dummy c1 <<<"$(conf)"
	host ip netns del c1
	ok DEL dummy c1 <<<"$(conf)"
	only_cnibox "the Go plugin stops at such a file"
	host touch /run/netns/c1
	ok DEL dummy c1 <<<"$(conf)"
}

@test "DEL leaves an interface of another kind alone" {
	only_cnibox "the Go plugin deletes whatever has the name"
	inside c1 ip link add eth0 type veth peer name other
	ok DEL dummy c1 <<<"$(conf)"
	inside c1 ip link show eth0
}

@test "a kernel without dummy interfaces: ADD and STATUS say so, and nothing is left" {
	no_dummy
	only_cnibox "the Go plugin says operation not supported"
	fails 100 'failed to create dummy.*the kernel lacks the kind \(module dummy\)' ADD dummy c1 <<<"$(conf)"
	nothing_left
	VERSION=1.1.0 fails 50 'the kernel lacks links of kind dummy \(module dummy\)' STATUS dummy c1 <<<"$(VERSION=1.1.0 conf)"
	same "links" "" "$(host ls /sys/class/net | grep -v -e '^lo$' -e bonding_masters | xargs)"
}

@test "the name is taken: ADD says so and leaves the other interface" {
	inside c1 ip link add eth0 type veth peer name other
	fails 102 'already exists|file exists' ADD dummy c1 <<<"$(conf)"
	inside c1 ip link show eth0
	nothing_left
}
