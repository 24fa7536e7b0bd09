# portmap: route_localnet and the guard that goes with it. No container reaches what listens on the node's
# loopback addresses, whoever comes and goes, and the setting does not outlive its guard. The topology is in
# portmap.bash.

load helpers
load portmap

# gateway: in place of cni0, the gateway is one end of a veth pair, the other a port of a bridge, as
# <bridge>.<vlan> is.
gateway() {
	topology
	host sh -c 'set -e
		ip link add cni0.7 type veth peer name gw7
		ip link set gw7 master cni0 up
		ip addr flush dev cni0
		sysctl -qw net.ipv6.conf.cni0.disable_ipv6=1
		ip link set cni0.7 up
		ip addr add 10.22.0.1/24 dev cni0.7 && ip addr add fd22::1/64 dev cni0.7 nodad'
}

guarded() { elements localnet | jq_is '[.nftables[1].set.elem[]? | .elem.val] | sort' "$1"; }

# reach FROM: whether the node's 127.0.0.1 answers.
loopback_from() {
	inside "$1" sh -c 'ip route del local 127.0.0.0/8 table local; ip route del local 127.0.0.1 table local;
		ip addr del 127.0.0.1/8 dev lo; ip route add 127.0.0.1 via 10.22.0.1'
	ask "$1" tcp 127.0.0.1 631
}

@test "a gateway that is a veth stays guarded while anybody needs it" {
	only_cnibox "Go has no guard"
	gateway
	serve host 631
	serve b 80
	host ip addr add 192.0.2.53/32 dev lo
	add a 2 "8080:80"
	add b 3 "8081:80"
	del a 2 -
	guarded '["cni0.7"]'
	check b 3 "8081:80"
	answers host tcp 127.0.0.1 8081 "b 10.22.0.1"
	same "the node's loopback address" "" "$(loopback_from b)"
	del b 3 -
	same "route_localnet" 0 "$(localnet cni0.7)"
	nothing_left cni0 va vb vx cni0.7 gw7
}

@test "a record of the version before takes no guard of a gateway along" {
	only_cnibox "about our table"
	gateway
	add a 2 "8080:80"
	add b 3 "8081:80"
	# It took every veth for a link to one container.
	owner=$(host nft list set inet cnibox_portmap owners | grep -o '[0-9a-f:]* [.] 1 comment[^,]*records=[^,]*from=10.22.0.0/24' | head -n1)
	[ -n "$owner" ]
	key=${owner%% comment*}
	text=${owner#*\"}
	text=$(host nft list set inet cnibox_portmap owners | grep -F "${key} comment" | sed 's/.*comment "\([^"]*\)".*/\1/')
	host nft "delete element inet cnibox_portmap owners { $key }; add element inet cnibox_portmap owners { $key comment \"${text/ from=/ dev=cni0.7 from=}\" }"
	[ "$(host nft list set inet cnibox_portmap owners | grep -c dev=cni0.7)" = 1 ]
	del a 2 -
	del b 3 -
	same "route_localnet" 0 "$(localnet cni0.7)"
	nothing_left cni0 va vb vx cni0.7 gw7
}

@test "an uplink that is a veth stays guarded while anybody needs it" {
	only_cnibox "Go has no guard"
	topology
	host ip route add 10.66.0.0/24 via 192.0.2.9
	far() { conf "$1" "$2" "$3" | jq --arg a "10.66.0.$2/24" '.prevResult.ips = [{address: $a, interface: 1}]'; }
	ok ADD portmap a <<<"$(far a 2 "8080:80")"
	ok ADD portmap b <<<"$(far b 3 "8081:80")"
	ok DEL portmap a <<<"$(far a 2 "8080:80")"
	guarded '["vx"]'
	ok CHECK portmap b <<<"$(far b 3 "8081:80")"
	ok DEL portmap b <<<"$(far b 3 "8081:80")"
	same "route_localnet" 0 "$(localnet vx)"
}

@test "a link of one container: the setting goes before the guard" {
	only_cnibox "Go leaves the sysctl"
	topology
	veth c 10.33.0 fd33
	lone=$(conf c 9 "8080:80" | jq '.prevResult.ips = [{address: "10.33.0.9/24", interface: 1}]')
	ok ADD portmap c <<<"$lone"
	add a 2 "8081:80"
	guarded '["cni0","vc"]'
	ok ADD portmap c <<<"$lone"
	same "route_localnet" 1 "$(localnet vc)"
	ok DEL portmap c <<<"$lone"
	guarded '["cni0"]'
	same "route_localnet" 0 "$(localnet vc)"
}

bare='{"cniVersion":"1.1.0","name":"net1","type":"portmap"}'

@test "after a flush of all rules DEL, GC, and ADD then DEL leave no setting without its guard" {
	only_cnibox "Go leaves the sysctl"
	topology
	add a 2 "8080:80"
	host nft flush ruleset
	ok DEL portmap a <<<"$bare"
	same "after DEL" 0 "$(localnet)"

	add a 2 "8080:80"
	host nft flush ruleset
	add a 2 "8080:80"
	same "after ADD" 1 "$(localnet)"
	del a 2 -
	same "after ADD and DEL" 0 "$(localnet)"

	add a 2 "8080:80"
	host nft flush ruleset
	add b 3 "8081:80"
	del a 2 -
	same "while b is there" 1 "$(localnet)"
	guarded '["cni0"]'
	del b 3 -
	same "after b" 0 "$(localnet)"

	add a 2 "8080:80"
	host nft flush ruleset
	ok GC portmap - <<<"$bare"
	same "after GC" 0 "$(localnet)"
	host ip -j link show cni0 | jq_is '.[0].altnames // []' '[]'
	nothing_left cni0 va vb vx
}

@test "the same where a network has two bridges" {
	only_cnibox "Go leaves the sysctl"
	topology
	host sh -c 'ip link add cni1 type bridge && ip link set cni1 up && ip addr add 10.44.0.1/24 dev cni1'
	netns c
	other=$(conf c 9 "8081:80" | jq '.prevResult.ips = [{address: "10.44.0.9/24", interface: 1}]')
	for flush in true "nft flush ruleset"; do
		add a 2 "8080:80"
		ok ADD portmap c <<<"$other"
		same "after ADD" 1 "$(localnet cni1)"
		host $flush
		ok DEL portmap a <<<"$bare"
		ok DEL portmap c <<<"$bare"
		same "the first one after DEL, $flush" 0 "$(localnet)"
		same "the second one after DEL, $flush" 0 "$(localnet cni1)"
	done
	host_is '[.[].altnames // [] | .[]]' '[]' ip -j link show
}

@test "the same on a link of one container" {
	only_cnibox "Go leaves the sysctl"
	topology
	veth c 10.33.0 fd33
	lone=$(conf c 9 "8080:80" | jq '.prevResult.ips = [{address: "10.33.0.9/24", interface: 1}]')
	ok ADD portmap c <<<"$lone"
	host nft flush ruleset
	ok DEL portmap c <<<"$bare"
	same "after DEL" 0 "$(localnet vc)"
	ok ADD portmap c <<<"$lone"
	host nft flush ruleset
	ok ADD portmap c <<<"$lone"
	ok DEL portmap c <<<"$bare"
	same "after ADD and DEL" 0 "$(localnet vc)"
	host ip -j link show vc | jq_is '.[0].altnames // []' '[]'
}

@test "what was set before us is left as it was, flush or not" {
	only_cnibox "Go leaves the sysctl"
	topology
	host sysctl -qw net.ipv4.conf.cni0.route_localnet=1
	add a 2 "8080:80"
	host nft flush ruleset
	del a 2 -
	same "after DEL" 1 "$(localnet)"
	add a 2 "8080:80"
	host nft flush ruleset
	add a 2 "8080:80"
	del a 2 -
	same "after ADD and DEL" 1 "$(localnet)"
}

@test "GC drops the guards of links that are gone" {
	only_cnibox "Go has no GC"
	topology
	veth c 10.33.0 fd33
	add a 2 "8080:80"
	CNI_ARGS='K8S_POD_NAMESPACE=n;K8S_POD_NAME=p' ok ADD portmap c <<<"$(conf c 9 "8081:80" |
		jq '.prevResult.ips = [{address: "10.33.0.9/24", interface: 1}]')"
	CNI_ARGS='K8S_POD_NAMESPACE=n;K8S_POD_NAME=p' add b 3 "8081:80"
	guarded '["cni0","vc"]'
	host ip link del vc
	ok GC portmap - <<<'{"cniVersion":"1.1.0","name":"net1","type":"portmap","cni.dev/valid-attachments":[
		{"containerID":"a","ifname":"eth0"},{"containerID":"b","ifname":"eth0"}]}'
	guarded '["cni0"]'
	check a 2 "8080:80"
	check b 3 "8081:80"
}
