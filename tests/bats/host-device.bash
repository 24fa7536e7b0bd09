# What the tests of host-device share. The device is dev0, one end of a veth pair whose other end is
# eth0 of the namespace "out".

load helpers

setup() {
	need_applet host-device host-local
	sandbox
	netns out
	netns c1
	device dev0
}
teardown() { sandbox_end; }

# device NAME [FAR]: a device whose other end is FAR (eth0) in "out".
device() {
	host ip link add "$1" address 02:00:00:00:00:d0 mtu 1400 type veth peer name "${2:-eth0}" netns out
	inside out ip link set "${2:-eth0}" up
}

GO_DIR=${CNI_GO_DIR:-/usr/lib/cni}
need_go() { [ -x "$GO_DIR/host-device" ] && [ ! -L "$GO_DIR/host-device" ] || skip "no Go plugins in $GO_DIR"; }

# conf [KEYS]: dev0, without IPAM. l3 [KEYS]: with addresses from 10.1.0.0/24.
conf() {
	jq -nc --argjson keys "${1:-"{}"}" --arg v "${VERSION:-1.0.0}" \
		'{cniVersion: $v, name: "net1", type: "host-device"} + (if ($keys | has("device") or has("hwaddr") or
			has("kernelpath") or has("pciBusID") or has("runtimeConfig")) then {} else {device: "dev0"} end) * $keys'
}
l3() { conf "$(jq -nc --argjson keys "${1:-"{}"}" '{ipam: {type: "host-local", subnet: "10.1.0.0/24"}} * $keys')"; }

# add ID CONFIG [IFNAME]: the ADD, whose result is kept.
add() {
	ok ADD host-device "$1" "${3:-eth0}" <<<"$2"
	printf '%s' "$output" >"$T/result-$1-${3:-eth0}"
}
del() { ok DEL host-device "$1" "${3:-eth0}" <<<"$2"; }
with_prev() { jq -c --slurpfile r "$T/result-$2-eth0" ".prevResult = (\$r[0] | ${3:-.})" <<<"$1"; }
check() { ok CHECK host-device "$2" <<<"$(with_prev "$1" "$2")"; }
# mismatch REGEX CONFIG ID [FILTER]
mismatch() { fails 101 "$1" CHECK host-device "$3" <<<"$(with_prev "$2" "$3" "${4:-.}")"; }

# link FILTER EXPECTED [NAME]: of the node; link_in of c1.
link() { host_is ".[0] | $1" "$2" ip -d -j link show dev "${3:-dev0}"; }
link_in() { inside_is c1 ".[0] | $1" "$2" ip -d -j link show dev "${3:-eth0}"; }
links() { inside "$1" ip -br link | sed 's/[@ ].*//' | grep -vx lo | sort | xargs; }
leases() { host sh -c 'ls /var/lib/cni/networks/net1 2>/dev/null | grep -v -e ^lock -e ^last' | xargs; }

# What the device is, as far as anybody can see, but for what runs by the clock.
picture() {
	host ip -d -j addr show dev dev0 | jq -c '.[0] | del(.ifindex, .link_index,
		.linkinfo.info_slave_data.forward_delay_timer) | .addr_info |= map(select(.scope == "global"))'
}
