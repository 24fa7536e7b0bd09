# What the tests of portmap share: a topology, configs, and looks at our table. Load after helpers.
#
#	x ---- 192.0.2.0/24, fd99::/64 ---- node ---- bridge cni0 10.22.0.0/24, fd22::/64 ---- a, b
#	y ---- 198.51.100.0/24 ------------/
#
# a is .2, b is .3, x and y are .9; the node is .1 everywhere.

setup() {
	need_applet portmap
	sandbox
}
teardown() { sandbox_end; }

GO_DIR=${CNI_GO_DIR:-/usr/lib/cni}

# veth NAME NET NET6: a namespace on a point-to-point link with the node.
veth() {
	netns "$1"
	inside "$1" sysctl -qw net.ipv6.conf.default.accept_dad=0
	host sh -c 'set -e; n=$1
		ip link add "v$n" type veth peer name eth0 netns "$n"
		ip addr add "$2.1/24" dev "v$n" && ip addr add "$3::1/64" dev "v$n" nodad
		ip link set "v$n" up
		ip -n "$n" addr add "$2.9/24" dev eth0 && ip -n "$n" addr add "$3::9/64" dev eth0 nodad
		ip -n "$n" link set eth0 up
		ip -n "$n" route add default via "$2.1" && ip -n "$n" route add default via "$3::1"' \
		veth "$@"
}

# port NAME NUMBER: a container on the bridge.
port() {
	netns "$1"
	inside "$1" sysctl -qw net.ipv6.conf.default.accept_dad=0
	host sh -c 'set -e; n=$1 i=$2
		ip link add "v$n" type veth peer name eth0 netns "$n"
		ip link set "v$n" master cni0 up
		ip -n "$n" addr add "10.22.0.$i/24" dev eth0
		ip -n "$n" addr add "fd22::$i/64" dev eth0 nodad
		ip -n "$n" link set eth0 up
		ip -n "$n" route add default via 10.22.0.1 && ip -n "$n" route add default via fd22::1' \
		port "$@"
}

topology() {
	host sh -c 'set -e
		sysctl -qw net.ipv6.conf.default.accept_dad=0
		ip link add cni0 type bridge
		sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
		for f in iptables ip6tables; do
			f=/proc/sys/net/bridge/bridge-nf-call-$f; [ ! -e $f ] || echo 0 >$f; done
		ip link set cni0 up
		ip addr add 10.22.0.1/24 dev cni0 && ip addr add fd22::1/64 dev cni0 nodad'
	port a 2
	port b 3
	veth x 192.0.2 fd99
}

# conf ID NUMBER MAPPINGS [KEYS]: a config; mappings are written HOST:CONTAINER[/proto][@hostIP], or
# "" for none, "-" for no runtimeConfig at all.
conf() {
	jq -n --arg id "$1" --arg i "$2" --arg maps "$3" --argjson keys "${4:-{\}}" \
		--arg v "${VERSION:-1.0.0}" --arg net "${NET:-net1}" --arg ifname "${IFNAME:-eth0}" '
		{cniVersion: $v, name: $net, type: "portmap", capabilities: {portMappings: true}}
		+ (if $maps == "-" then {} else {runtimeConfig: {portMappings: ($maps | split(" ") | map(
			capture("^(?<h>[0-9]+):(?<c>[0-9]+)(/(?<p>[^@]+))?(@(?<ip>.+))?$")
			| {hostPort: (.h | tonumber), containerPort: (.c | tonumber), protocol: (.p // "tcp")}
				+ if .ip then {hostIP: .ip} else {} end))}} end)
		+ {prevResult: {cniVersion: $v, interfaces: [{name: "cni0", mac: "aa:aa:aa:aa:aa:aa"},
			{name: $ifname, mac: "aa:aa:aa:aa:aa:ab", sandbox: "/run/netns/\($id)"}],
		ips: [{address: "10.22.0.\($i)/24", interface: 1, gateway: "10.22.0.1"},
			{address: "fd22::\($i)/64", interface: 1}]}} + $keys'
}

# add ID NUMBER MAPPINGS [KEYS], and so on.
add() { ok ADD portmap "$1" "${IFNAME:-eth0}" <<<"$(conf "$@")"; }
del() { ok DEL portmap "$1" "${IFNAME:-eth0}" <<<"$(conf "$@")"; }
# With both families Debian's Go plugin looks for the IPv4 rules in ip6tables too, and fails.
check() { ! is_cnibox || ok CHECK portmap "$1" "${IFNAME:-eth0}" <<<"$(conf "$@")"; }

# answers FROM PROTO ADDR PORT ANSWER.
answers() { same "$2 from $1 to $3 $4" "$5" "$(ask "$1" "$2" "$3" "$4")"; }

# What a map or set of ours holds, without comments.
elements() { host nft -j list set inet cnibox_portmap "$1" 2>/dev/null || host nft -j list map inet cnibox_portmap "$1"; }
count() { elements "$1" | jq '[.nftables[] | (.set // .map // empty).elem // [] | .[]] | length'; }

localnet() { host cat "/proc/sys/net/ipv4/conf/${1:-cni0}/route_localnet"; }
