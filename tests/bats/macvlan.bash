# What the tests of macvlan share: a master m0 of the node, whose far side is eth0 of the namespace
# "far", a port of a bridge there that has the addresses .254 and ::fe, as a switch would.

GO_DIR=${CNI_GO_DIR:-/usr/lib/cni}
need_go() { [ -x "$GO_DIR/macvlan" ] && [ ! -L "$GO_DIR/macvlan" ] || skip "no Go plugins in $GO_DIR"; }

make_far() {
	netns far
	inside far ip -batch - <<-'END'
		link add br0 type bridge mcast_snooping 0
		addr add 10.1.0.254/24 dev br0
		addr add fd00:1::fe/64 dev br0 nodad
		link set br0 up
	END
}

make_master() {
	make_far
	host ip link add m0 type veth peer name eth0 netns far
	inside far ip link set eth0 master br0 up
	host ip link set m0 up
}

# need_master_inside NAME: the same with the master in that container.
need_master_inside() {
	netns "$1"
	host ip link set m0 netns "$1"
	inside "$1" ip link set m0 up
}

# l3 [KEYS]: addresses from 10.1.0.0/24 and a default route by the far side. dual: and from fd00:1::/64.
l3() {
	jq -nc --argjson keys "${1:-"{}"}" --arg v "${VERSION:-1.0.0}" '{cniVersion: $v, name: "net1",
		type: "macvlan", master: "m0", ipam: {type: "host-local", subnet: "10.1.0.0/24",
		routes: [{dst: "0.0.0.0/0", gw: "10.1.0.254"}]}} * $keys
		| if .ipam.ranges then del(.ipam.subnet) else . end'
}
dual() {
	l3 "$(jq -nc --argjson keys "${1:-"{}"}" '{ipam: {ranges: [[{subnet: "10.1.0.0/24"}], [{subnet: "fd00:1::/64"}]],
		routes: [{dst: "0.0.0.0/0", gw: "10.1.0.254"}]}} * $keys')"
}

# add ID CONFIG [IFNAME]: the namespace and the ADD; keeps the result.
add() {
	host test -e "/run/netns/$1" || netns "$1"
	ok ADD macvlan "$1" "${3:-eth0}" <<<"$2"
	printf '%s' "$output" >"$T/result-$1-${3:-eth0}"
}
del() { ok DEL macvlan "$1" "${3:-eth0}" <<<"$2"; }
# with_prev CONFIG ID [FILTER [IFNAME]]
with_prev() { jq -c --slurpfile r "$T/result-$2-${4:-eth0}" ".prevResult = (\$r[0] | ${3:-.})" <<<"$1"; }
# check CONFIG ID [IFNAME]; mismatch REGEX CONFIG ID [FILTER]
check() { ok CHECK macvlan "$2" "${3:-eth0}" <<<"$(with_prev "$1" "$2" . "${3:-eth0}")"; }
mismatch() { fails 101 "$1" CHECK macvlan "$3" <<<"$(with_prev "$2" "$3" "${4:-.}")"; }

# link_in ID FILTER EXPECTED [IFNAME]
link_in() { inside_is "$1" ".[0] | $2" "$3" ip -d -j link show dev "${4:-eth0}"; }
# no_link ID [IFNAME]: it is not there.
no_link() { inside "$1" sh -c '! ip link show "$1"' sh "${2:-eth0}" 2>/dev/null; }
mac_of() { inside "$1" ip -j link show dev eth0 | jq -r '.[0].address'; }
addrs() { inside "$1" ip -j addr show dev "${2:-eth0}" | jq -r '.[].addr_info[]? | select(.scope == "global")
	| "\(.local)/\(.prefixlen)"' | xargs; }
leases() { host sh -c 'ls /var/lib/cni/networks/net1 2>/dev/null | grep -v -e ^lock -e ^last' | xargs; }
settled() { [ -z "$(inside "$1" ip -6 addr show tentative)" ]; }

# fake RESULT [KEYS]: IPAM is a double that answers ADD with RESULT; $T/fake.log has its verbs.
fake() {
	cat >"$T/bin/fake" <<-END
		#!/bin/sh
		cat >/dev/null
		echo "\$CNI_COMMAND" >>"$T/fake.log"
		[ "\$CNI_COMMAND" != ADD ] || cat "$T/result"
	END
	chmod +x "$T/bin/fake"
	jq -n --argjson r "$1" '{cniVersion: "1.0.0"} + $r' >"$T/result"
	l3 "${2:-"{}"}" | jq -c '.ipam = {type: "fake"}'
}
