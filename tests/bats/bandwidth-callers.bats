# bandwidth: what its callers rely on: words they search for, results they hand on.

load helpers
load bandwidth

setup() {
	need_applet bandwidth
	sandbox
	pair c1
}
teardown() { sandbox_end; }

# refused MESSAGE LIMITS: in these words and no others.
refused() {
	local verb
	for verb in ADD CHECK; do
		fails 7 '.' $verb bandwidth c1 <<<"$(config "$2")"
		is .msg "$1"
	done
}

@test "the words for limits that make no sense are the Go plugin's" {
	refused 'if burst is set, rate must also be set' '{"ingressBurst":800000}'
	! is_cnibox || [[ $output == *'"details": "ingressRate is 0'* ]]
	refused 'if burst is set, rate must also be set' '{"egressBurst":800000,"egressRate":null}'
	! is_cnibox || [[ $output == *'"details": "egressRate is 0'* ]]
	refused 'if rate is set, burst must also be set' '{"egressRate":800000}'
	refused 'if rate is set, burst must also be set' \
		'{"runtimeConfig":{"bandwidth":{"ingressRate":800000,"ingressBurst":0}}}'
	refused 'burst cannot be more than 4GB' '{"egressRate":800000,"egressBurst":34359738360}'
}

@test "an interface index in prevResult that names no interface is passed through" {
	local index
	for index in -1 7; do
		ok ADD bandwidth c1 <<<"$(config "$BOTH" | jq ".prevResult.ips[0].interface = $index")"
		is '.ips[0].interface' "$index"
		ok CHECK bandwidth c1 <<<"$(config "$BOTH" | jq ".prevResult.ips[0].interface = $index")"
		ok DEL bandwidth c1 <<<"$(config "$BOTH" | jq ".prevResult.ips[0].interface = $index")"
		host tc qdisc del dev veth0 root 2>/dev/null || :
		host tc qdisc del dev veth0 ingress 2>/dev/null || :
	done
}

@test "the IFB has its MTU in results since 1.1.0" {
	only_cnibox "the Go plugin reports none"
	host ip link set veth0 mtu 1400
	VERSION=1.1.0
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	is '.interfaces[2] | [.name, .mtu]' "[\"$IFB\",1400]"
	is '.interfaces[0] | has("mtu")' false
	# An IFB that is there already follows the veth.
	host ip link set veth0 mtu 1300
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	is '.interfaces[2].mtu' 1300
	host_is '.[0].mtu' 1300 ip -j link show "$IFB"
	VERSION=1.0.0
	ok ADD bandwidth c1 <<<"$(config "$BOTH")"
	is '.interfaces[2] | has("mtu")' false
}

@test "what the Go plugin made of bursts that are not given passes CHECK, whatever the rate" {
	only_cnibox "this is about changing over"
	local go=${CNI_GO_DIR:-/usr/lib/cni} rate burst conf
	[ -x "$go/bandwidth" ] || skip "no Go plugins in $go"
	for rate in 80000 8000000 1000000000; do
		for burst in 2147483647 4294967295 34359738359; do
			conf=$(config "{\"ingressRate\":$rate,\"ingressBurst\":$burst}")
			ok ADD "$go/bandwidth" c1 <<<"$conf"
			ok CHECK bandwidth c1 <<<"$conf"
			ok DEL bandwidth c1 <<<"$conf"
		done
	done
}
