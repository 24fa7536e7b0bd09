# dummy on a kernel that has such interfaces: tests/vm/run bats tests/vm/dummy.bats

load ../bats/helpers

setup() {
	need_applet dummy host-local
	sandbox
	host ip link add probe type dummy 2>/dev/null || skip "this kernel has no dummy interfaces"
	host ip link del probe
	netns c1
}
teardown() { sandbox_end; }

# conf [KEYS]
conf() {
	jq -nc --argjson keys "${1:-"{}"}" --arg v "${VERSION:-1.0.0}" '{cniVersion: $v, name: "net1", type: "dummy",
		ipam: {type: "host-local", subnet: "10.7.0.0/24"}} * $keys'
}
with_prev() { jq -c --argjson r "$result" '.prevResult = $r' <<<"$1"; }
# link FILTER EXPECTED [NAME]: about the interface in the container.
link() { inside_is c1 ".[0] | $1" "$2" ip -d -j addr show dev "${3:-eth0}"; }
leases() { host sh -c 'ls /var/lib/cni/networks/net1 2>/dev/null | grep -c ^10' || :; }

@test "ADD, CHECK, DEL: made with its addresses, seen, and gone" {
	ok ADD dummy c1 <<<"$(conf)"
	result=$output
	is '[.interfaces[].name, .interfaces[].sandbox, .ips[].address, .ips[].interface]' \
		'["eth0","/run/netns/c1","10.7.0.2/24",0]'
	link '[.linkinfo.info_kind, .mtu, (.flags | index("UP") != null), .addr_info[0].local]' '["dummy",1500,true,"10.7.0.2"]'
	link .address "$(jq -r '.interfaces[0].mac' <<<"$result")"
	ok CHECK dummy c1 <<<"$(with_prev "$(conf)")"
	inside c1 ip link set eth0 down
	fails 101 'eth0 is down|down' CHECK dummy c1 <<<"$(with_prev "$(conf)")"
	ok DEL dummy c1 <<<"$(conf)"
	same "links" lo "$(inside c1 ip -br link | awk '{print $1}' | xargs)"
	ok DEL dummy c1 <<<"$(conf)"
	nothing_left
}

@test "mtu, mac and dns of the config count, and are in the result" {
	only_cnibox "the Go plugin ignores all three"
	VERSION=1.1.0
	c=$(conf '{"mtu":1400,"mac":"02:00:00:00:00:07","dns":{"domain":"example.net"}}')
	ok ADD dummy c1 <<<"$c"
	result=$output
	is '[.interfaces[0].mac, .interfaces[0].mtu, .dns.domain]' '["02:00:00:00:00:07",1400,"example.net"]'
	link '[.address, .mtu]' '["02:00:00:00:00:07",1400]'
	ok CHECK dummy c1 <<<"$(with_prev "$c")"
	inside c1 ip link set eth0 address 02:00:00:00:00:08
	fails 101 'Mac' CHECK dummy c1 <<<"$(with_prev "$c")"
	ok STATUS dummy c1 <<<"$c"
	ok DEL dummy c1 <<<"$c"
	ok ADD dummy c1 <<<"$(jq -c '.runtimeConfig.mac = "02:00:00:00:00:09"' <<<"$c")"
	is '.interfaces[0].mac' '"02:00:00:00:00:09"'
}

@test "the attachment's mark: DEL finds a renamed interface, and leaves another attachment's" {
	only_cnibox "the Go plugin goes by the name"
	ok ADD dummy c1 <<<"$(conf)"
	ok ADD dummy c1 eth1 <<<"$(conf)"
	inside c1 sh -c 'ip link set eth0 down && ip link set eth0 name moved0 &&
		ip link set eth1 down && ip link set eth1 name eth0'
	ok DEL dummy c1 eth0 <<<"$(conf)"
	same "links" "eth0 lo" "$(inside c1 ip -br link | awk '{print $1}' | sort | xargs)"
	same leases 1 "$(leases)"
	ok DEL dummy c1 eth1 <<<"$(conf)"
	same "links" lo "$(inside c1 ip -br link | awk '{print $1}' | xargs)"
	nothing_left
}

@test "a failing ADD leaves neither interface nor lease; one without a mark is deleted by name" {
	fails any '' ADD dummy c1 <<<"$(conf '{"ipam":{"subnet":"10.7.0.0/33"}}')"
	same "links" lo "$(inside c1 ip -br link | awk '{print $1}' | xargs)"
	nothing_left
	inside c1 ip link add eth0 type dummy
	ok DEL dummy c1 <<<"$(conf)"
	same "links" lo "$(inside c1 ip -br link | awk '{print $1}' | xargs)"
}

@test "an IPAM plugin that is executed finds the interface up, and again when it is to release" {
	only_cnibox "the Go plugin makes it, but leaves it down"
	host mkdir /run/ipam
	host tee /run/ipam/mine >/dev/null <<-'EOS'
		#!/bin/sh
		cat >/dev/null
		ip netns exec "${CNI_NETNS##*/}" ip -br link show "$CNI_IFNAME" | sed "s/^/$CNI_COMMAND /" >>/run/seen
		[ "$CNI_COMMAND" != ADD ] || echo '{"cniVersion":"1.0.0","ips":[{"address":"10.8.0.2/24"}]}'
	EOS
	host chmod +x /run/ipam/mine
	CNI_PATH=/run/ipam:$CNI_PLUGIN_DIR ok ADD dummy c1 <<<"$(conf '{"ipam":{"type":"mine"}}')"
	CNI_PATH=/run/ipam:$CNI_PLUGIN_DIR ok DEL dummy c1 <<<"$(conf '{"ipam":{"type":"mine"}}')"
	[[ $(host cat /run/seen) =~ ^'ADD eth0'.*',UP,'.*$'\n''DEL eth0'.*',UP,' ]]
}
