# What the tests of bridge share.
#
# bridge: containers on a Linux bridge. Layer 2, layer 3, what fails and what is left then. Rules in
# the firewall (ipMasq, macspoofchk) are in bridge-nft.bats, VLANs in tests/vm/vlan.bats.

load helpers

setup() {
	need_applet bridge host-local
	sandbox
	mkdir "$T/bin"
	export CNI_PATH=$CNI_PLUGIN_DIR:$T/bin
}
teardown() { sandbox_end; }

GO_DIR=${CNI_GO_DIR:-/usr/lib/cni}
need_go() { [ -x "$GO_DIR/bridge" ] && [ ! -L "$GO_DIR/bridge" ] || skip "no Go plugins in $GO_DIR"; }

# l2 [KEYS]: a config without IPAM, with these keys.
l2() {
	jq -nc --argjson keys "${1:-"{}"}" --arg v "${VERSION-1.0.0}" \
		'{cniVersion: $v, name: "net1", type: "bridge", bridge: "br0"} * $keys'
}

# l3 [KEYS]: with addresses from 10.1.0.0/24, the gateway being 10.1.0.1.
l3() {
	l2 "$(jq -nc --argjson keys "${1:-"{}"}" \
		'{ipam: {type: "host-local", subnet: "10.1.0.0/24"}} * $keys')"
}

# dual [KEYS]: from 10.1.0.0/24 and fd00:1::/64.
dual() {
	l2 "$(jq -nc --argjson keys "${1:-"{}"}" '{ipam: {type: "host-local",
		ranges: [[{subnet: "10.1.0.0/24"}], [{subnet: "fd00:1::/64"}]]}} * $keys')"
}

# fake RESULT [KEYS]: a config whose IPAM plugin is a double that answers ADD with RESULT. What it
# was called with is in $T/fake.log; it refuses a verb with what is in $T/refuse.VERB.
fake() {
	cat >"$T/bin/fake" <<-END
		#!/bin/sh
		cat >"$T/stdin.\$CNI_COMMAND"
		echo "\$CNI_COMMAND \$CNI_CONTAINERID \$CNI_IFNAME" >>"$T/fake.log"
		if [ -e "$T/refuse.\$CNI_COMMAND" ]; then cat "$T/refuse.\$CNI_COMMAND"; exit 1; fi
		[ "\$CNI_COMMAND" != ADD ] || cat "$T/result"
	END
	chmod +x "$T/bin/fake"
	jq -n --argjson r "$1" --arg v "${VERSION:-1.0.0}" '{cniVersion: $v} + $r' >"$T/result"
	l2 "$(jq -nc --argjson keys "${2:-"{}"}" '{ipam: {type: "fake"}} * $keys')"
}
refuse() { printf '%s' '{"cniVersion":"1.0.0","code":55,"msg":"no more","details":"really"}' >"$T/refuse.$1"; }

# add ID CONFIG [IFNAME]: the namespace and the ADD. Sets port and keeps the result.
add() {
	host test -e "/run/netns/$1" || netns "$1"
	ok ADD bridge "$1" "${3:-eth0}" <<<"$2"
	port=$(jq -r '.interfaces[1].name' <<<"$output")
	printf '%s' "$output" >"$T/result-$1-${3:-eth0}"
}
del() { ok DEL bridge "$1" "${3:-eth0}" <<<"$2"; }

# with_prev CONFIG ID [FILTER]: the config with the result of that ADD, changed by the filter.
with_prev() {
	jq -c --slurpfile r "$T/result-$2-eth0" ".prevResult = (\$r[0] | ${3:-.})" <<<"$1"
}
check() { ok CHECK bridge "$2" <<<"$(with_prev "$1" "$2")"; }
# mismatch REGEX CONFIG ID [FILTER]
mismatch() { fails 101 "$1" CHECK bridge "$3" <<<"$(with_prev "$2" "$3" "${4:-.}")"; }

# link NAME FILTER EXPECTED, link_in NS NAME FILTER EXPECTED: of ip -d -j link.
link() { host_is ".[0] | $2" "$3" ip -d -j link show dev "$1"; }
link_in() { inside_is "$1" ".[0] | $3" "$4" ip -d -j link show dev "$2"; }
mac_of() { host cat "/sys/class/net/$1/address"; }
# The addresses of a device as ADDRESS/LEN, link-local ones left out.
addrs() { inside "$1" ip -j addr show dev "$2" | jq -r '.[].addr_info[]? | select(.scope == "global")
	| "\(.local)/\(.prefixlen)"' | xargs; }
sysctl() { inside "$1" cat "/proc/sys/net/$2"; }
ports() { host ip -j link show master "${1:-br0}" | jq length; }
leases() { host sh -c 'ls /var/lib/cni/networks/net1 2>/dev/null | grep -v -e ^lock -e ^last' | xargs; }
taken_bridge() { host ip link add br0 type bridge; }
