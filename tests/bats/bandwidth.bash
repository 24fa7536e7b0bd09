# What the tests of bandwidth share; after helpers.

# pair ID [IFNAME] [HOSTNAME] [NET]: what a main plugin would have made: a veth pair with addresses
# 10.NET.0.1 (host) and 10.NET.0.2 (container).
pair() {
	local id=$1 ifname=${2:-eth0} veth=${3:-veth0} net=${4:-9}
	host test -e "/run/netns/$id" || netns "$id"
	host ip link add "$veth" type veth peer name "$ifname" netns "$id"
	host ip addr add "10.$net.0.1/24" dev "$veth"
	host ip link set "$veth" up
	inside "$id" ip addr add "10.$net.0.2/24" dev "$ifname"
	inside "$id" ip link set "$ifname" up
}

# config LIMITS [ID] [IFNAME] [HOSTNAME]: a config with these keys, and the prevResult of pair.
config() {
	jq -n --argjson keys "$1" --arg id "${2:-c1}" --arg ifname "${3:-eth0}" --arg veth "${4:-veth0}" \
		--arg v "${VERSION:-1.0.0}" '{cniVersion: $v, name: "net1", type: "bandwidth"} + $keys +
		{prevResult: {cniVersion: $v, interfaces: [{name: $veth, mac: "aa:aa:aa:aa:aa:aa"},
			{name: $ifname, mac: "aa:aa:aa:aa:aa:ab", sandbox: "/run/netns/\($id)"}],
		ips: [{address: "10.9.0.2/24", interface: 1} +
			if $v < "1" then {version: "4"} else {} end]}}'
}

BOTH='{"ingressRate":8000000,"ingressBurst":800000,"egressRate":16000000,"egressBurst":1600000}'
# bwp + SHA-512("net1" "c1")
IFB=bwp$(printf net1c1 | sha512sum | cut -c1-12)

# The qdiscs of a link as lines "KIND HANDLE RATE LIMIT", rate in bytes/s.
qdiscs() {
	host tc -j -d qdisc show dev "$1" | jq -r '.[] | select(.kind == "tbf" or .kind == "ingress"
		or .kind == "clsact") | "\(.kind) \(.handle) \(.options.rate // "")"' | sed 's/ $//'
}
tbf() { host tc qdisc show dev "$1" root | head -n 1; }

redirects_to() {
	[[ $(host tc filter show dev "$1" parent ffff:) == *"Egress Redirect to device $2"* ]]
}

# A receiver that lets SKIP bytes pass and then times BYTES bytes: microseconds in $T/us.
receive() {
	local to=$1 address=$2 skip=$3 bytes=$4
	rm -f "$T/us"
	spawn "$to" bash -c "socat -u $address - | {
		head -c $skip >/dev/null; a=\${EPOCHREALTIME/[.,]/}
		head -c $bytes >/dev/null; b=\${EPOCHREALTIME/[.,]/}
		echo \$((b - a)) >$T/us; cat >/dev/null; }"
}

# rate FROM TO ADDRESS BURST BYTES: bits per second on the wire, of BYTES bytes of datagrams that
# follow the first 2 * BURST. The sender offers more than fits.
rate() {
	local from=$1 to=$2 addr=$3 us
	receive "$to" UDP4-RECV:$PORT $(($4 * 2)) "$5"
	wait_for 60 listening "$to" $PORT udp
	spawn "$from" socat -u -b 1472 /dev/zero "UDP4-SENDTO:$addr:$PORT"
	wait_for 60 test -s "$T/us"
	pkill -P "$spawned"
	read -r us <"$T/us"
	# 1472 bytes in a frame of 1514.
	echo $(($5 * 8 * 1514 / 1472 * 1000000 / us))
}

# tcp_rate FROM TO ADDRESS BURST BYTES: the same by TCP, which may stall after losses.
tcp_rate() {
	local from=$1 to=$2 addr=$3 us
	receive "$to" TCP4-LISTEN:$PORT,reuseaddr $(($4 * 2)) "$5"
	wait_for 60 listening "$to" $PORT tcp
	inside "$from" timeout 60 sh -c "head -c $(($4 * 2 + $5)) /dev/zero | socat -u - TCP4:$addr:$PORT"
	wait_for 60 test -s "$T/us"
	read -r us <"$T/us"
	echo $(($5 * 8 * 1514 / 1448 * 1000000 / us))
}

# between LOW HIGH rate|tcp_rate ARG...: whether what that measures lies there. On a busy machine sender or
# receiver may be kept waiting, so it may try five times: a limit that is wrong is so every time.
between() {
	local low=$1 high=$2 got PORT
	shift 2
	for PORT in 5001 5002 5003 5004 5005; do
		got=$("$@")
		echo "measured $got bit/s, wanted $low to $high" >&2
		[ "$got" -le "$low" ] || [ "$got" -ge "$high" ] || return 0
	done
	return 1
}

# near WANTED rate|tcp_rate ARG...: within ten per cent.
near() { between $(($1 * 9 / 10)) $(($1 * 11 / 10)) "${@:2}"; }
