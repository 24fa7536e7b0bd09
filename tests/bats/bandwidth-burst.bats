# bandwidth: the bursts that runtimes send where the user gave none.

load helpers
load bandwidth

setup() {
	need_applet bandwidth
	sandbox
	pair c1
}
teardown() { sandbox_end; }

# dockershim and cri-dockerd, containerd, CRI-O: the largest number each thinks that the plugin takes.
NOT_GIVEN='2147483647 4294967295 34359738359'

# both RATE BURST: limits for both directions.
both() { echo "{\"ingressRate\":$1,\"ingressBurst\":$2,\"egressRate\":$1,\"egressBurst\":$2}"; }

# The burst of a link's bucket in bytes, as tc prints it.
burst() { host tc -j qdisc show dev "$1" root | jq '.[0].options.burst'; }

@test "the rate holds from the first second where no burst is given" {
	only_cnibox "the Go plugin lets hundreds of megabytes pass first"
	ok ADD bandwidth c1 <<<"$(config "$(both 8000000 4294967295)")"
	# Ten seconds' worth, from the second packet on.
	between 7600000 8240000 rate host c1 10.9.0.2 736 9700000
	near 8000000 rate c1 host 10.9.0.1 736 2900000
}

@test "it holds for TCP, and for a rate of a few packets a second" {
	only_cnibox "the Go plugin lets hundreds of megabytes pass first"
	ok ADD bandwidth c1 <<<"$(config "$(both 32000000 34359738359)")"
	# TCP may stall after losses.
	between 24000000 34000000 tcp_rate host c1 10.9.0.2 700 8000000
	ok ADD bandwidth c1 <<<"$(config "$(both 128000 2147483647)")"
	near 128000 rate c1 host 10.9.0.1 3036 36800
}

@test "a burst that is not given is a tenth of a second of the rate, two packets at least" {
	only_cnibox "the Go plugin takes it for a burst"
	local burst
	for burst in $NOT_GIVEN; do
		ok ADD bandwidth c1 <<<"$(config "$(both 10000000 "$burst")")"
		same "burst of the veth" 125000 "$(burst veth0)"
		same "burst of the IFB" 125000 "$(burst "$IFB")"
		# A second of the rate and 25 ms of it: 1281250 bytes, whatever the burst.
		host_is '.[0].options | [.rate, .limit]' '[1250000,1281250]' tc -r -j qdisc show dev veth0 root
		host_is '.[0].options | [.rate, .limit]' '[1250000,1281250]' tc -r -j qdisc show dev "$IFB" root
		ok CHECK bandwidth c1 <<<"$(config "$(both 10000000 "$burst")")"
	done
	ok ADD bandwidth c1 <<<"$(config "$(both 80000 4294967295)")"
	same "burst of the veth" 3036 "$(burst veth0)"
	ok CHECK bandwidth c1 <<<"$(config "$(both 80000 4294967295)")"
	host ip link set veth0 mtu 9000
	ok ADD bandwidth c1 <<<"$(config "$(both 80000 4294967295)")"
	same "burst of the IFB" 18036 "$(burst "$IFB")"
	[[ $stderr != *'smaller than a full packet'* ]]
	ok CHECK bandwidth c1 <<<"$(config "$(both 80000 4294967295)")"
	# 400 Gbit/s, and a rate that no link has: what does not fit is cut, nothing wraps around.
	ok ADD bandwidth c1 <<<"$(config "$(both 400000000000 4294967295)")"
	ok CHECK bandwidth c1 <<<"$(config "$(both 400000000000 4294967295)")"
}

@test "a burst that is given is kept, however large" {
	local burst
	for burst in 4294967294 4294967296 8000000000; do
		ok ADD bandwidth c1 <<<"$(config "{\"ingressRate\":1000000000,\"ingressBurst\":$burst}")"
		burst=$((burst / 8 - $(burst veth0)))
		# tc computes it from a time.
		[ ${burst#-} -lt 1000 ] || show "off by $burst"
		host tc qdisc del dev veth0 root
	done
}

@test "CHECK passes what a version before this one made, ADD puts it right" {
	only_cnibox "this is about changing over"
	local burst
	for burst in $NOT_GIVEN; do
		host tc qdisc replace dev veth0 root handle 1: tbf rate 10mbit burst $((burst / 8)) limit 1281250
		ok CHECK bandwidth c1 <<<"$(config "{\"ingressRate\":10000000,\"ingressBurst\":$burst}")"
		ok ADD bandwidth c1 <<<"$(config "{\"ingressRate\":10000000,\"ingressBurst\":$burst}")"
		same "burst" 125000 "$(burst veth0)"
		ok CHECK bandwidth c1 <<<"$(config "{\"ingressRate\":10000000,\"ingressBurst\":$burst}")"
		host tc qdisc change dev veth0 root handle 1: tbf rate 10mbit burst 250000 limit 1281250
		fails 101 "Buffer doesn't match" CHECK bandwidth c1 \
			<<<"$(config "{\"ingressRate\":10000000,\"ingressBurst\":$burst}")"
	done
}
