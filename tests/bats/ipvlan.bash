# What the tests of ipvlan share: a master m0 of the node with 10.1.0.253, whose far side is eth0 of the
# namespace "far" with 10.1.0.254, and there a route by the node to 10.2.0.0/16. Executing a program takes
# a tenth of a second in the virtual machine: what the shell can do it does itself.

GO_DIR=${CNI_GO_DIR:-/usr/lib/cni}

make_master() {
	netns far
	host ip -batch - <<-'END'
		link add m0 type veth peer name eth0 netns far
		addr add 10.1.0.253/24 dev m0
		link set m0 up
	END
	inside far ip -batch - <<-'END'
		addr add 10.1.0.254/24 dev eth0
		link set eth0 up
		route add 10.2.0.0/16 via 10.1.0.253
	END
}

# conf [KEYS] [SUBNET [ROUTE]]: KEYS without braces, as '"mode":"l3"'. bare [KEYS]: without IPAM.
bare() {
	printf '%s' "{\"cniVersion\":\"${VERSION:-1.0.0}\",\"name\":\"${NET:-net1}\",\"type\":\"ipvlan\"${1:+,$1}}"
}
conf() {
	local route=${3:-'{"dst":"0.0.0.0/0","gw":"10.1.0.254"}'}
	bare "\"master\":\"m0\"${1:+,$1},\"ipam\":{\"type\":\"host-local\",\"subnet\":\"${2:-10.1.0.0/24}\",\"routes\":[$route]}"
}
L3='"mode":"l3"'
# l3 [KEYS]: addresses from 10.2.0.0/24, everything else by the node.
l3() { conf "${1:-$L3}" 10.2.0.0/24 '{"dst":"0.0.0.0/0"}'; }

# add ID CONFIG [IFNAME]: the namespace and the ADD; keeps the result.
add() {
	[ -e "/proc/$HOLDER/root/run/netns/$1" ] || netns "$1"
	ok ADD ipvlan "$1" "${3:-eth0}" <<<"$2"
	printf '%s' "$output" >"$T/result-$1"
}
del() { ok DEL ipvlan "$1" "${3:-eth0}" <<<"$2"; }
with_prev() { printf '%s' "${1%\}},\"prevResult\":$(<"$T/result-$2")}"; }
# check CONFIG ID; mismatch REGEX CONFIG ID
check() { ok CHECK ipvlan "$2" <<<"$(with_prev "$1" "$2")"; }
mismatch() { fails 101 "$1" CHECK ipvlan "$3" <<<"$(with_prev "$2" "$3")"; }

# link_in ID FILTER EXPECTED [IFNAME]
link_in() { inside_is "$1" ".[0] | $2" "$3" ip -d -j addr show dev "${4:-eth0}"; }
# no_link ID [IFNAME]: it is not there. links ID: all of them but lo.
no_link() { inside "$1" sh -c '! ip link show "$1"' sh "${2:-eth0}" 2>/dev/null; }
links() {
	local _ name out=''
	while read -r _ name _; do
		name=${name%:}
		[ "$name" = lo ] || out+=" ${name%%@*}"
	done <<<"$(inside "$1" ip -o link)"
	echo "${out# }"
}
leases() {
	local f out=''
	for f in "/proc/$HOLDER/root/var/lib/cni/networks/${1:-net1}"/[0-9f]*; do
		[ ! -e "$f" ] || out+=" ${f##*/}"
	done
	echo "${out# }"
}
