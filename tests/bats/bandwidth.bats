# bandwidth: limits in both directions of a veth pair.

load helpers
load bandwidth

setup() {
	need_applet bandwidth
	sandbox
}
teardown() { sandbox_end; }

GO_DIR=${CNI_GO_DIR:-/usr/lib/cni}

@test "ADD shapes both directions and reports the IFB" {
	pair c1
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	is .cniVersion '"1.0.0"'
	is '.interfaces | length' 3
	is '.interfaces[0:2]' '[{"name":"veth0","mac":"aa:aa:aa:aa:aa:aa"},
		{"name":"eth0","mac":"aa:aa:aa:aa:aa:ab","sandbox":"/run/netns/c1"}]'
	is '.interfaces[2].name' "\"$IFB\""
	is '.interfaces[2].mac' "$(host ip -j link show "$IFB" | jq '.[0].address')"
	is '.interfaces[2] | has("sandbox")' false
	is '.ips[0].interface' 1
	same "qdiscs of the veth" $'tbf 1: 1000000\ningress ffff:' "$(qdiscs veth0)"
	same "qdiscs of the IFB" 'tbf 1: 2000000' "$(qdiscs "$IFB")"
	redirects_to veth0 "$IFB"
	host_is '.[0].flags | index("UP") != null' true ip -j link show "$IFB"
	host_is '.[0].mtu' 1500 ip -j link show "$IFB"
	ok CHECK bandwidth c1 <<<"$(config "$BOTH")"
	ok DEL bandwidth c1 <<<"$(config "$BOTH")"
	nothing_left veth0
}

@test "the limits of the Go plugin: 25 ms of the rate and the burst may wait" {
	pair c1
	ok ADD bandwidth c1 <<<"$(config '{"ingressRate":1000000,"ingressBurst":800000,
		"egressRate":2000000,"egressBurst":400000}')"
	# (limit - burst) / rate is what tc prints as latency.
	tbf veth0
	tbf "$IFB"
	[[ $(tbf veth0) == *'rate 1Mbit burst 100000b lat 25'* ]]
	[[ $(tbf "$IFB") == *'rate 2Mbit burst 50000b lat 25'* ]]
}

@test "what the container receives keeps to the ingress rate" {
	pair c1
	ok ADD bandwidth c1 <<<"$(config '{"ingressRate":16000000,"ingressBurst":800000}')"
	is '.interfaces | length' 2
	near 16000000 rate host c1 10.9.0.2 100000 2000000
	# The other direction is free.
	between 64000000 1000000000000 tcp_rate c1 host 10.9.0.1 100000 20000000
}

@test "what the container sends keeps to the egress rate" {
	pair c1
	ok ADD bandwidth c1 <<<"$(config '{"egressRate":16000000,"egressBurst":800000}')"
	near 16000000 rate c1 host 10.9.0.1 100000 2000000
	between 64000000 1000000000000 tcp_rate host c1 10.9.0.2 100000 20000000
}

@test "both at once, each at its own rate" {
	pair c1
	ok ADD bandwidth c1 <<<"$(config '{"ingressRate":24000000,"ingressBurst":800000,
		"egressRate":12000000,"egressBurst":800000}')"
	near 24000000 rate host c1 10.9.0.2 100000 3000000
	near 12000000 rate c1 host 10.9.0.1 100000 1500000
}

@test "TCP gets along with it" {
	pair c1
	ok ADD bandwidth c1 <<<"$(config '{"ingressRate":24000000,"ingressBurst":800000,
		"egressRate":12000000,"egressBurst":800000}')"
	between 14000000 26400000 tcp_rate host c1 10.9.0.2 100000 6000000
	between 7000000 13200000 tcp_rate c1 host 10.9.0.1 100000 3000000
}

@test "a burst passes at once" {
	pair c1
	# 40 kbit/s alone would take a hundred seconds for 500 kB.
	ok ADD bandwidth c1 <<<"$(config '{"ingressRate":40000,"ingressBurst":8000000}')"
	spawn c1 bash -c "socat -u TCP4-LISTEN:5001 - | head -c 500000 >/dev/null; touch $T/done"
	wait_for 60 listening c1 5001 tcp
	inside host timeout 60 sh -c 'head -c 500000 /dev/zero | socat -u - TCP4:10.9.0.2:5001'
	wait_for 60 test -e "$T/done"
}

@test "no limits: the result passes through and nothing is made" {
	pair c1
	ok ADD bandwidth c1 <<<"$(config '{}')"
	is '.interfaces | length' 2
	same qdiscs '' "$(qdiscs veth0)"
	ok ADD bandwidth c1 <<<"$(config '{"ingressRate":0,"ingressBurst":0,"egressRate":0,"egressBurst":0}')"
	is '.interfaces | length' 2
	nothing_left veth0
	ok DEL bandwidth c1 <<<"$(config '{}')"
	# Debian's Go plugin crashes on this.
	! is_cnibox || ok CHECK bandwidth c1 <<<"$(config '{}')"
}

@test "limits by capability, in the spelling containerd sends" {
	pair c1
	ok ADD bandwidth c1 <<<"$(config '{"runtimeConfig":{"bandwidth":{"IngressRate":8000000,
		"IngressBurst":800000,"EgressRate":0,"EgressBurst":0}}}')"
	same qdiscs 'tbf 1: 1000000' "$(qdiscs veth0)"
	is '.interfaces | length' 2
}

@test "limits in the config replace all of the runtime's, even when they are null or 0" {
	local rc='"runtimeConfig":{"bandwidth":{"ingressRate":8000000,"ingressBurst":800000}}'
	pair c1
	ok ADD bandwidth c1 <<<"$(config "{\"egressRate\":0,$rc}")"
	same qdiscs '' "$(qdiscs veth0)"
	ok ADD bandwidth c1 <<<"$(config "{\"egressBurst\":null,$rc}")"
	same qdiscs '' "$(qdiscs veth0)"
	ok ADD bandwidth c1 <<<"$(config "{\"ingressRate\":16000000,\"ingressBurst\":800000,$rc}")"
	same qdiscs 'tbf 1: 2000000' "$(qdiscs veth0)"
}

@test "limits that make no sense are refused before anything is made" {
	local verb
	pair c1
	for verb in ADD CHECK; do
		fails 7 'if rate is set, burst must also be set' $verb bandwidth c1 \
			<<<"$(VERSION=0.4.0 config '{"ingressRate":100}')"
		fails 7 'if burst is set, rate must also be set' $verb bandwidth c1 \
			<<<"$(config '{"egressBurst":100}')"
		fails 7 'burst cannot be more than 4GB' $verb bandwidth c1 \
			<<<"$(config '{"ingressRate":8000000,"ingressBurst":34359738360}')"
		fails 7 '.' $verb bandwidth c1 <<<"$(config '{"ingressRate":"1M","ingressBurst":8}')"
		fails 7 '.' $verb bandwidth c1 <<<"$(config '{"ingressRate":-8,"ingressBurst":8}')"
	done
	fails 7 'must be called as (a )?chained plugin' ADD bandwidth c1 \
		<<<"$(config "$BOTH" | jq 'del(.prevResult)')"
	fails 7 'must be called as a chained plugin' CHECK bandwidth c1 \
		<<<"$(config "$BOTH" | jq 'del(.prevResult)')"
	nothing_left veth0
}

@test "less than a byte is refused with a reason, a missing result too" {
	only_cnibox "the kernel refuses with a bare EINVAL there, and without limits it crashes"
	pair c1
	fails 7 'at least 8 bits' ADD bandwidth c1 <<<"$(config '{"ingressRate":7,"ingressBurst":800000}')"
	fails 7 'at least 8 bits' ADD bandwidth c1 <<<"$(config '{"egressRate":8000,"egressBurst":7}')"
	fails 7 'must be called as chained plugin' ADD bandwidth c1 <<<"$(config '{}' | jq 'del(.prevResult)')"
	nothing_left veth0
}

@test "only a veth whose other end the result names is shaped" {
	pair c1
	inside c1 ip link add d0 type ifb
	fails 100 'was not a veth interface' ADD bandwidth c1 d0 <<<"$(config "$BOTH" c1 d0)"
	fails 100 'no veth peer: could not look up' ADD bandwidth c1 net9 <<<"$(config "$BOTH" c1 net9)"
	fails 7 'no veth peer of container interface found in host ns' ADD bandwidth c1 \
		<<<"$(config "$BOTH" c1 eth0 other)"
	fails 7 'no interfaces provided' ADD bandwidth c1 \
		<<<"$(config "$BOTH" | jq 'del(.prevResult.interfaces, .prevResult.ips)')"
	NETNS=/run/netns/none fails 8 'failed to open netns' ADD bandwidth c1 <<<"$(config "$BOTH")"
	# A pair whose other end is in a third namespace.
	netns c2
	host ip -n c2 link add in index 4242 type veth peer name out netns c1
	fails any 'not in host ns|found in host ns' ADD bandwidth c1 out <<<"$(config "$BOTH" c1 out)"
	nothing_left veth0
}

@test "a link of the same index in the host is not taken for the peer" {
	only_cnibox "the Go plugin goes by index and name"
	local index
	pair c1
	netns c2
	index=$(host ip -j link show veth0 | jq '.[0].ifindex')
	host ip -n c2 link add in index "$index" type veth peer name out netns c1
	fails 100 "veth peer with index $index is not in host ns" ADD bandwidth c1 out \
		<<<"$(config "$BOTH" c1 out veth0)"
	same "the other container's end" '' "$(qdiscs veth0)"
}

@test "the queue is bounded by latency when the config says so" {
	only_cnibox "there is no such key"
	local conf='{"latency":20,"ingressRate":800000000,"ingressBurst":80000000}'
	pair c1
	ok ADD bandwidth c1 <<<"$(config "$conf")"
	# 20 ms at 100 MB/s.
	host_is '.[0].options.limit' 2000000 tc -j qdisc show dev veth0 root
	ok CHECK bandwidth c1 <<<"$(config "$conf")"
	fails 101 "Limit doesn't match" CHECK bandwidth c1 <<<"$(config "$conf" | jq '.latency = 30')"
	fails 7 latency ADD bandwidth c1 <<<"$(config "$conf" | jq '.latency = 0')"
}

@test "more than 32 Gbit/s" {
	local conf='{"ingressRate":80000000000,"ingressBurst":8000000000}'
	pair c1
	ok ADD bandwidth c1 <<<"$(config "$conf")"
	same qdiscs 'tbf 1: 10000000000' "$(qdiscs veth0)"
	ok CHECK bandwidth c1 <<<"$(config "$conf")"
}

@test "results keep to the config's version" {
	pair c1
	for VERSION in 0.3.0 0.3.1 0.4.0; do
		ok ADD bandwidth c1 <<<"$(config "$BOTH")"
		is '[.cniVersion, .ips[0].version, .dns, (.interfaces | length)]' "[\"$VERSION\",\"4\",{},3]"
		host tc qdisc del dev veth0 root
		host tc qdisc del dev veth0 ingress
		ok DEL bandwidth c1 <<<"$(config "$BOTH")"
	done
	VERSION=0.2.0
	fails 1 'incompatible CNI versions' ADD bandwidth c1 <<<"$(config "$BOTH")"
}

@test "ADD again changes nothing, new limits are applied" {
	only_cnibox "the Go plugin fails with \"file exists\""
	pair c1
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	local first=$output
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	same "result" "$first" "$output"
	same "filters" 1 "$(host tc filter show dev veth0 parent ffff: | grep -c mirred)"
	ok ADD bandwidth c1 <<<"$(config "$BOTH" | jq '.ingressRate = 4000000 | .egressRate = 2400000')"
	same "qdiscs of the veth" $'tbf 1: 500000\ningress ffff:' "$(qdiscs veth0)"
	same "qdiscs of the IFB" 'tbf 1: 300000' "$(qdiscs "$IFB")"
	ok CHECK bandwidth c1 <<<"$(config "$BOTH" | jq '.ingressRate = 4000000 | .egressRate = 2400000')"
}

@test "ADD after a DEL that left the veth alive" {
	only_cnibox "the Go plugin leaves the ingress qdisc and fails"
	pair c1
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	host ip link del "$IFB"
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	redirects_to veth0 "$IFB"
	same "filters" 1 "$(host tc filter show dev veth0 parent ffff: | grep -c mirred)"
	ok CHECK bandwidth c1 <<<"$(config "$BOTH")"
	inside c1 ping -c1 -W2 10.9.0.1
}

@test "after DEL the container's packets pass, unshaped" {
	only_cnibox "the Go plugin leaves a redirect to nowhere"
	pair c1
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	ok DEL bandwidth c1 <<<"$(config "$BOTH")"
	same qdiscs '' "$(qdiscs veth0)"
	inside c1 ping -c1 -W2 10.9.0.1
	nothing_left veth0
}

@test "DEL needs neither netns nor prevResult, and may come twice" {
	pair c1
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	NETNS='' ok DEL bandwidth c1 <<<"$(config "$BOTH" | jq 'del(.prevResult)')"
	nothing_left veth0
	NETNS='' ok DEL bandwidth c1 <<<"$(config "$BOTH" | jq 'del(.prevResult)')"
	NETNS=/run/netns/gone ok DEL bandwidth c1 <<<"$(config "$BOTH")"
	ok DEL bandwidth c9 <<<"$(config '{}')"
}

@test "DEL does not look at what the limits are" {
	only_cnibox "the Go plugin fails and leaks the IFB"
	pair c1
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	ok DEL bandwidth c1 <<<"$(config '{"egressRate":"fast","ingressBurst":-1}')"
	nothing_left veth0
}

@test "an ADD that fails halfway leaves nothing" {
	only_cnibox "the Go plugin has no rollback"
	pair c1
	host ip link add other type ifb
	host tc qdisc add dev veth0 ingress
	host tc filter add dev veth0 parent ffff: prio 1 protocol all u32 match u32 0 0 \
		action mirred egress redirect dev other
	fails 102 'already redirected' ADD bandwidth c1 <<<"$(config "$BOTH")"
	same "qdiscs" 'ingress ffff:' "$(qdiscs veth0)"
	nothing_left veth0 other
	host tc qdisc del dev veth0 ingress
	host tc qdisc add dev veth0 root pfifo
	fails 100 'root qdisc of kind pfifo' ADD bandwidth c1 <<<"$(config "$BOTH")"
	nothing_left veth0 other
	host_is '.[0].kind' pfifo tc -j qdisc show dev veth0 root
}

@test "another's clsact qdisc is used and kept, with its filters" {
	only_cnibox "the Go plugin fails beside clsact"
	pair c1
	host tc qdisc add dev veth0 clsact
	host tc filter add dev veth0 ingress prio 7 protocol ip u32 match ip dport 1 0xffff flowid 1:1
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	ok CHECK bandwidth c1 <<<"$(config "$BOTH")"
	[[ $(host tc filter show dev veth0 ingress) == *"Egress Redirect to device $IFB"* ]]
	inside c1 ping -c1 -W2 10.9.0.1
	ok DEL bandwidth c1 <<<"$(config "$BOTH")"
	same "qdiscs" 'clsact ffff:' "$(qdiscs veth0)"
	[[ $(host tc filter show dev veth0 ingress) == *'pref 7 u32'* ]]
	[[ $(host tc filter show dev veth0 ingress) != *mirred* ]]
}

@test "CHECK finds changed limits" {
	local conf=$BOTH
	pair c1
	ok ADD bandwidth c1 <<<"$(config "$conf")"
	fails 101 "Rate doesn't match" CHECK bandwidth c1 <<<"$(config "$conf" | jq '.ingressRate = 8000800')"
	fails 101 "Rate doesn't match" CHECK bandwidth c1 <<<"$(config "$conf" | jq '.egressRate = 8000800')"
	fails 101 "Limit doesn't match" CHECK bandwidth c1 <<<"$(config "$conf" | jq '.egressBurst = 1600800')"
	host ip link del "$IFB"
	fails 101 'get ifb device' CHECK bandwidth c1 <<<"$(config "$conf")"
}

# broken COMMAND...: after it CHECK fails; a new ADD repairs it.
broken() {
	local words=$1
	shift
	host "$@"
	fails 101 "$words" CHECK bandwidth c1 <<<"$(config "$BOTH")"
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	ok CHECK bandwidth c1 <<<"$(config "$BOTH")"
}

@test "CHECK really looks: every missing piece is found, and ADD repairs it" {
	only_cnibox "the Go plugin passes when a qdisc or the redirect is gone, and cannot ADD twice"
	pair c1
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	broken 'Failed to find qdisc' tc qdisc del dev veth0 root
	broken 'Failed to find qdisc' tc qdisc del dev "$IFB" root
	broken 'Failed to find qdisc.*ingress' tc qdisc del dev veth0 ingress
	broken 'Failed to find filter' tc filter del dev veth0 parent ffff:
	broken "$IFB is down" ip link set "$IFB" down
	broken 'get ifb device' ip link del "$IFB"
	broken "Buffer doesn't match" tc qdisc change dev veth0 root handle 1: tbf rate 8mbit burst 50000 limit 125000
	broken "Limit doesn't match" tc qdisc change dev veth0 root handle 1: tbf rate 8mbit burst 100000 limit 100000
}

@test "two interfaces of one container and network have an IFB each" {
	only_cnibox "the Go plugin's name has no interface in it: the second ADD fails"
	local other
	pair c1
	pair c1 net1 veth1 8
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	ok ADD bandwidth c1 net1 <<<"$(config "$BOTH" c1 net1 veth1)"
	other=$(jq -r '.interfaces[2].name' <<<"$output")
	[ "$other" != "$IFB" ]
	[[ $other =~ ^bwp[0-9a-f]{12}$ ]]
	redirects_to veth1 "$other"
	ok CHECK bandwidth c1 <<<"$(config "$BOTH")"
	ok CHECK bandwidth c1 net1 <<<"$(config "$BOTH" c1 net1 veth1)"
	NETNS='' ok DEL bandwidth c1 <<<"$(config "$BOTH")"
	nothing_left veth0 veth1 "$other"
	# The name that has become free does not confuse the one that is left.
	ok ADD bandwidth c1 net1 <<<"$(config "$BOTH" c1 net1 veth1)"
	is '.interfaces[2].name' "\"$other\""
	NETNS='' ok DEL bandwidth c1 net1 <<<"$(config "$BOTH" c1 net1 veth1)"
	nothing_left veth0 veth1
}

@test "a link of another kind under the IFB's name is left alone" {
	only_cnibox "the Go plugin deletes it"
	pair c1
	host ip link add "$IFB" type bridge
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	holds ".interfaces[2].name != \"$IFB\""
	ok DEL bandwidth c1 <<<"$(config "$BOTH")"
	nothing_left veth0 "$IFB"
}

# What is left when ADD is killed right after the IFB was made.
half_made() {
	host ip link set "$1" down
	host ip link set "$1" alias ''
	host tc qdisc del dev "$1" root
}

@test "what a killed ADD left is taken over by the next ADD, or removed by DEL" {
	only_cnibox "the Go plugin has no way to tell"
	pair c1
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	host tc qdisc del dev veth0 ingress
	half_made "$IFB"
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	is '.interfaces[2].name' "\"$IFB\""
	ok CHECK bandwidth c1 <<<"$(config "$BOTH")"
	host tc qdisc del dev veth0 ingress
	half_made "$IFB"
	NETNS='' ok DEL bandwidth c1 <<<"$(config "$BOTH")"
	nothing_left veth0
}

@test "GC removes what no valid attachment of this network owns, and nothing else" {
	only_cnibox "the Go plugin has no GC"
	local conf='{"cniVersion":"1.1.0","name":"net1","type":"bandwidth"}' c2 c3 c4
	pair c1
	pair c2 eth0 veth2 7
	pair c3 eth0 veth3 6
	pair c4 eth0 veth4 5
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	ok ADD bandwidth c2 <<<"$(config "$BOTH" c2 eth0 veth2)"
	c2=$(jq -r '.interfaces[2].name' <<<"$output")
	ok ADD bandwidth c3 <<<"$(config "$BOTH" c3 eth0 veth3)"
	c3=$(jq -r '.interfaces[2].name' <<<"$output")
	ok ADD bandwidth c4 <<<"$(config "$BOTH" c4 eth0 veth4 | jq '.name = "net2"')"
	c4=$(jq -r '.interfaces[2].name' <<<"$output")
	host ip link add bwp0123456789ab type ifb
	host ip link add ifb7 type ifb
	half_made "$c3"
	ok GC bandwidth - <<<"$(jq '.["cni.dev/valid-attachments"] =
		[{"containerID":"c1","ifname":"eth0"},{"containerID":"c3","ifname":"eth0"}]' <<<"$conf")"
	nothing_left veth0 veth2 veth3 veth4 "$IFB" "$c3" "$c4" bwp0123456789ab ifb7
	ok GC bandwidth - <<<"$(jq '.["cni.dev/valid-attachments"] =
		[{"containerID":"c1","ifname":"eth0"}]' <<<"$conf")"
	nothing_left veth0 veth2 veth3 veth4 "$IFB" "$c4" bwp0123456789ab ifb7
	ok CHECK bandwidth c1 <<<"$(config "$BOTH")"
	ok GC bandwidth - <<<"$conf"
	nothing_left veth0 veth2 veth3 veth4 "$c4" bwp0123456789ab ifb7
}

@test "STATUS asks the kernel and leaves no trace" {
	only_cnibox "the Go plugin has no STATUS"
	ok STATUS bandwidth - <<<'{"cniVersion":"1.1.0","name":"net1","type":"bandwidth"}'
	same output '' "$output"
	nothing_left
	same "qdisc of lo" noqueue "$(host tc -j qdisc show dev lo | jq -r '.[].kind')"
	fails 7 'burst must also be set' STATUS bandwidth - \
		<<<'{"cniVersion":"1.1.0","name":"net1","type":"bandwidth","egressRate":8}'
	# Without the right to change anything.
	CNI_COMMAND=STATUS CNI_PATH=/x host setpriv --bounding-set=-net_admin --inh-caps=-net_admin \
		"$CNI_PLUGIN_DIR/bandwidth" <<<'{"cniVersion":"1.1.0","name":"n"}' >"$T/stdout" || status=$?
	same status 1 "$status"
	jq_is .code 50 <"$T/stdout"
}

@test "a container shaped by the Go plugin is checked and cleaned up by us" {
	only_cnibox "this is about changing over"
	[ -x "$GO_DIR/bandwidth" ] || skip "no Go plugins in $GO_DIR"
	pair c1
	ok ADD "$GO_DIR/bandwidth" c1 <<<"$(config "$BOTH")"
	ok CHECK bandwidth c1 <<<"$(config "$BOTH")"
	ok DEL bandwidth c1 <<<"$(config "$BOTH")"
	nothing_left veth0
	same qdiscs '' "$(qdiscs veth0)"
	ok ADD "$GO_DIR/bandwidth" c1 <<<"$(config "$BOTH")"
	NETNS='' ok DEL bandwidth c1 <<<"$(config "$BOTH")"
	nothing_left veth0
}

@test "the Go plugin's IFB of another interface of the container survives our DEL" {
	only_cnibox "this is about changing over"
	[ -x "$GO_DIR/bandwidth" ] || skip "no Go plugins in $GO_DIR"
	local other
	pair c1
	pair c1 net1 veth1 8
	ok ADD "$GO_DIR/bandwidth" c1 <<<"$(config "$BOTH")"
	ok ADD bandwidth c1 net1 <<<"$(config "$BOTH" c1 net1 veth1)"
	other=$(jq -r '.interfaces[2].name' <<<"$output")
	[ "$other" != "$IFB" ]
	ok DEL bandwidth c1 net1 <<<"$(config "$BOTH" c1 net1 veth1)"
	nothing_left veth0 veth1 "$IFB"
	ok CHECK bandwidth c1 <<<"$(config "$BOTH")"
}

@test "with bursts the Go plugin overflows on, what it made passes our CHECK" {
	only_cnibox "this is about changing over"
	[ -x "$GO_DIR/bandwidth" ] || skip "no Go plugins in $GO_DIR"
	local burst conf
	pair c1
	for burst in 4294967295 34359738359; do
		conf="{\"ingressRate\":10000000,\"ingressBurst\":$burst}"
		ok ADD "$GO_DIR/bandwidth" c1 <<<"$(config "$conf")"
		ok CHECK bandwidth c1 <<<"$(config "$conf")"
		ok DEL bandwidth c1 <<<"$(config "$conf")"
		same qdiscs '' "$(qdiscs veth0)"
	done
}

@test "a container shaped by us is checked and cleaned up by the Go plugin" {
	only_cnibox "this is about changing over"
	[ -x "$GO_DIR/bandwidth" ] || skip "no Go plugins in $GO_DIR"
	pair c1
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	ok CHECK "$GO_DIR/bandwidth" c1 <<<"$(config "$BOTH")"
	ok DEL "$GO_DIR/bandwidth" c1 <<<"$(config "$BOTH")"
	nothing_left veth0
}
