# ipMasq with the gateway on a VLAN, `<bridge>.<vlan>`: behind a port of the bridge. With bridge-nf-call-iptables, usual on
# nodes of a cluster, bridged packets pass the chains of IP before they come to the gateway.
# tests/vm/run bats tests/vm/masquerade.bats

load ../bats/helpers

setup() {
	need_applet bridge host-local portmap
	sandbox
	host ip link add probe type bridge vlan_filtering 1 2>/dev/null || skip "this kernel's bridges cannot filter VLANs"
	host ip link del probe
	modprobe br_netfilter 2>/dev/null || [ -e /proc/sys/net/bridge ] || skip "no br_netfilter"
}
teardown() { sandbox_end; }

NET='{"cniVersion":"1.1.0","name":"net1","type":"bridge","bridge":"br0","vlan":100,"isGateway":true,"ipMasq":true,
	"ipam":{"type":"host-local","ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd00:1::/64"}]],
	"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]}}'
CALLS='net.bridge.bridge-nf-call-iptables=1 net.bridge.bridge-nf-call-ip6tables=1'

# Behind the node, with no way back to the containers.
outside() {
	netns out
	host ip -batch - <<-EOS
		link add to-out type veth peer name eth0 netns out
		addr add 192.0.2.1/24 dev to-out
		addr add 2001:db8::1/64 dev to-out nodad
		link set to-out up
	EOS
	inside out ip -batch - <<-EOS
		addr add 192.0.2.2/24 dev eth0
		addr add 2001:db8::2/64 dev eth0 nodad
		link set eth0 up
	EOS
}
answers() { [ "$1" = "$(ASK_WAIT=5 ask "${@:2}")" ]; }
settled() { [ -z "$(inside "$1" ip -6 addr show tentative)" ]; }

@test "what leaves through a gateway on a VLAN is masqueraded, with bridge-nf-call-iptables too" {
	local calls
	outside
	serve out 8080
	serve out 8081 -6
	serve out 8082 udp
	for calls in "${CALLS//=1/=0}" "$CALLS"; do
		# shellcheck disable=SC2086 # a list
		host sysctl -qw $calls
		netns c1
		ok ADD bridge c1 <<<"$NET"
		wait_for 30 settled c1
		wait_for 30 settled host
		same "IPv4, $calls" "out 192.0.2.1" "$(ask c1 tcp 192.0.2.2 8080)"
		same "IPv6, $calls" "out 2001:db8::1" "$(ask c1 tcp 2001:db8::2 8081)"
		# A datagram that comes while socat starts its child is lost: asked again.
		wait_for 120 answers "out 192.0.2.1" c1 udp 192.0.2.2 8082
		ok CHECK bridge c1 <<<"$(jq -c --argjson r "$output" '.prevResult = $r' <<<"$NET")"
		ok DEL bridge c1 <<<"$NET"
		same "ruleset, $calls" '' "$(host nft list ruleset)"
		host ip netns del c1
	done
}

@test "with bridge-nf-call-iptables the node and the neighbours see the container's own address, and host ports work" {
	local prev
	# shellcheck disable=SC2086 # a list
	host sysctl -qw $CALLS
	outside
	netns c1
	netns c2
	ok ADD bridge c2 <<<"$NET"
	serve c2 8080
	prev=$output
	ok ADD portmap c2 <<<"$(jq -nc --argjson r "$prev" '{cniVersion: "1.1.0", name: "net1", type: "portmap", prevResult: $r,
		runtimeConfig: {portMappings: [{hostPort: 80, containerPort: 8080}]}}')"
	ok ADD bridge c1 <<<"$NET"
	serve host 8081
	same "to the node" "host 10.1.0.3" "$(ask c1 tcp 10.1.0.1 8081)"
	same "to the neighbour" "c2 10.1.0.3" "$(ask c1 tcp 10.1.0.2 8080)"
	same "from outside to the host port" "c2 192.0.2.2" "$(ask out tcp 192.0.2.1 80)"
}

@test "CHECK notices when the packets on their way to the gateway are looked at again" {
	local conf
	netns c1
	ok ADD bridge c1 <<<"$NET"
	conf=$(jq -c --argjson r "$output" '.prevResult = $r' <<<"$NET")
	ok CHECK bridge c1 <<<"$conf"
	host nft flush set inet cni_plugins_masquerade gateways
	fails 101 'chain bridged' CHECK bridge c1 <<<"$conf"
	# What nft prints, nft takes.
	host nft list ruleset >"$T/rules"
	host sh -c 'nft flush ruleset && nft -f "$1" && nft list ruleset' sh "$T/rules" | cmp - "$T/rules"
}
