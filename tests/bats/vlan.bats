# vlan, as far as a kernel without VLAN links can show it. The rest is in tests/vm/vlan-link.bats.

load helpers

setup() {
	need_applet vlan host-local
	sandbox
	netns c1
	host ip link add m0 type veth peer name far
}
teardown() { sandbox_end; }

# conf [KEYS]
conf() {
	jq -nc --argjson keys "${1:-"{}"}" --arg v "${VERSION:-1.0.0}" '{cniVersion: $v, name: "net1", type: "vlan",
		master: "m0", vlanId: 10, ipam: {type: "host-local", subnet: "10.1.0.0/24"}} * $keys'
}
no_vlan() {
	! host ip link add link m0 name probe type vlan id 5 2>/dev/null || skip "this kernel has VLAN links"
}

@test "what is wrong in the config is refused, and nothing is made" {
	fails 7 'invalid VLAN ID 4095' ADD vlan c1 <<<"$(conf '{"vlanId":4095}')"
	fails 7 'invalid VLAN ID -1' ADD vlan c1 <<<"$(conf '{"vlanId":-1}')"
	fails 7 '' ADD vlan c1 <<<"$(conf '{"vlanId":"10"}')"
	fails 7 '"master" field is required' ADD vlan c1 <<<"$(conf '{"master":""}')"
	fails 7 'Link not found' ADD vlan c1 <<<"$(conf '{"master":"nowhere"}')"
	fails 7 'invalid MTU 1501, must be \[0, master MTU\(1500\)\]' ADD vlan c1 <<<"$(conf '{"mtu":1501}')"
	nothing_left m0 far
	only_cnibox "makes the link first"
	fails 7 'no plugin name provided' ADD vlan c1 <<<"$(conf | jq -c 'del(.ipam)')"
	fails 7 'mtu 67' ADD vlan c1 <<<"$(conf '{"mtu":67}')"
	inside c1 sh -c '! ip link show eth0' 2>/dev/null
}

@test "linkInContainer without a master needs a list that has just one link in the container" {
	only_cnibox "wants a master; 1.1.1 does not know the key"
	local c prev
	c=$(conf '{"master":"","linkInContainer":true}')
	# A default route is no answer.
	inside c1 sh -c 'ip link add ext0 type veth peer name ext1 && ip link set ext0 up && ip link set ext1 up &&
		ip route add default dev ext0'
	fails 7 'PrevResult lacks a single named interface in the container' ADD vlan c1 <<<"$c"
	prev='{"cniVersion":"1.0.0","interfaces":[{"name":"ext0","sandbox":"/run/netns/c1"},
		{"name":"ext1","sandbox":"/run/netns/c1"},{"name":"m0"}]}'
	fails 7 'PrevResult lacks a single named interface in the container' ADD vlan c1 \
		<<<"$(jq -c --argjson p "$prev" '.prevResult = $p' <<<"$c")"
	# A name that only the host has.
	fails 7 'failed to lookup master "m0"' ADD vlan c1 <<<"$(conf '{"linkInContainer":true}')"
	nothing_left m0 far
}

@test "DEL of what was never there succeeds, whatever is gone" {
	ok DEL vlan c1 <<<"$(conf)"
	NETNS='' ok DEL vlan c1 <<<"$(conf)"
	only_cnibox "the Go plugin checks the config first, and wants the master"
	ok DEL vlan c1 <<<"$(conf '{"master":"nowhere","vlanId":5000,"mtu":70000}')"
	ok DEL vlan c1 <<<"$(conf '{"master":"","linkInContainer":true}')"
	ok DEL vlan c1 <<<"$(conf | jq -c 'del(.ipam)')"
	host ip netns del c1
	ok DEL vlan c1 <<<"$(conf '{"linkInContainer":true}')"
	host touch /run/netns/c1
	ok DEL vlan c1 <<<"$(conf)"
}

@test "DEL releases the lease though master and namespace are gone" {
	only_cnibox "the Go plugin gives up"
	NETNS=/run/netns/c1 ok ADD host-local c1 <<<"$(conf)"
	host test -e /var/lib/cni/networks/net1/10.1.0.2
	host ip link del m0
	host ip netns del c1
	ok DEL vlan c1 <<<"$(conf)"
	nothing_left
}

@test "DEL leaves an interface of another kind alone" {
	only_cnibox "the Go plugin deletes whatever has the name"
	inside c1 ip link add eth0 type veth peer name other
	ok DEL vlan c1 <<<"$(conf)"
	inside c1 ip link show eth0
}

@test "the name is taken: ADD says so and leaves the other interface" {
	only_cnibox "leaves a link under another name"
	inside c1 ip link add eth0 type veth peer name other
	fails 102 'already exists' ADD vlan c1 <<<"$(conf)"
	inside c1 ip link show eth0
	nothing_left m0 far
}

@test "a kernel without VLAN links: ADD and STATUS say so, and nothing is left" {
	no_vlan
	fails 100 'failed to create vlan' ADD vlan c1 <<<"$(conf)"
	nothing_left m0 far
	only_cnibox "the Go plugin says operation not supported"
	[[ $output == *'the kernel lacks the kind (module 8021q)'* ]]
	VERSION=1.1.0 fails 50 'the kernel lacks links of kind vlan \(module 8021q\)' STATUS vlan c1 <<<"$(VERSION=1.1.0 conf)"
}
