# bridge: the bridge that attachments share, found or made, by many at once.

load bridge

# ---- the bridge itself ------------------------------------------------------------------------

@test "a bridge that was there is used as it is" {
	taken_bridge
	host ip link set br0 mtu 1450 alias mine
	host ip link add p0 type veth peer name p1
	host ip link set p0 master br0
	host ip link set p0 up
	add c1 "$(l3 '{"mtu":1400}')"
	link br0 '[.mtu, .ifalias]' '[1450,"mine"]'
	link br0 '.flags | index("UP") != null' true
	same "MAC of the bridge" "$(mac_of br0)" "$(jq -r '.interfaces[0].mac' <<<"$output")"
	same ports 2 "$(ports)"
	same "accept_ra" 0 "$(sysctl host ipv6/conf/br0/accept_ra)"
	check "$(l3)" c1
	del c1 "$(l3)"
	nothing_left br0 p0 p1
}

@test "a bridge that was there and is empty: the MAC reported is the one it has then" {
	taken_bridge
	add c1 "$(l3)"
	same "MAC of the bridge" "$(mac_of br0)" "$(jq -r '.interfaces[0].mac' <<<"$output")"
}

@test "a bridge that was there: the gateway's MAC stays, however ports come and go" {
	taken_bridge
	add c1 "$(l3 '{"isGateway":true}')"
	local mac
	mac=$(mac_of br0)
	same "MAC of the bridge" "$mac" "$(jq -r '.interfaces[0].mac' <<<"$output")"
	host ip link add p0 address 00:00:00:00:00:01 type veth peer name p1
	host ip link set p0 master br0
	same "MAC of the bridge" "$mac" "$(mac_of br0)"
	del c1 "$(l3 '{"isGateway":true}')"
	same "MAC of the bridge" "$mac" "$(mac_of br0)"
}

@test "the bridge's MAC is fixed from the first ADD on" {
	only_cnibox "without a gateway it follows the ports, and CHECK fails"
	local mac
	add c1 "$(l2)"
	mac=$(mac_of br0)
	same "MAC of the bridge" "$mac" "$(jq -r '.interfaces[0].mac' <<<"$output")"
	host ip link add p0 address 00:00:00:00:00:01 type veth peer name p1
	host ip link set p0 master br0
	same "MAC of the bridge" "$mac" "$(mac_of br0)"
	add c2 "$(l2)"
	same "MAC of the bridge" "$mac" "$(jq -r '.interfaces[0].mac' <<<"$output")"
	del c1 "$(l2)"
	same "MAC of the bridge" "$mac" "$(mac_of br0)"
	check "$(l2)" c2
}

@test "a bridge with the spanning tree protocol" {
	host ip link add br0 type bridge stp_state 1
	add c1 "$(l3)"
	link "$port" .operstate UP
}

@test "the name is taken by something that is not a bridge" {
	host ip link add br0 type veth peer name other
	netns c1
	fails 102 'failed to create bridge "br0": "?br0"? already exists but is not a bridge' ADD bridge c1 <<<"$(l3)"
	same leases '' "$(leases)"
	nothing_left br0 other
}

@test "a link that is not a bridge does not become promiscuous" {
	only_cnibox "does it before it looks"
	host ip link add br0 type veth peer name other
	netns c1
	fails 102 'not a bridge' ADD bridge c1 <<<"$(l2 '{"promiscMode":true}')"
	link br0 '.flags | index("PROMISC") == null' true
}

@test "names that no bridge can have" {
	local n
	netns c1
	for n in '' 1234567890123456; do
		fails 7 'failed to create bridge' ADD bridge c1 <<<"$(l2 '{"bridge":"'"$n"'"}')"
	done
	for n in . .. a/b 'a b' 'a:b' ../../x; do
		fails 7 . ADD bridge c1 <<<"$(l2 '{"bridge":"'"$n"'"}')"
	done
	nothing_left
	add c1 "$(l3 '{"bridge":"123456789012345","isGateway":true}')"
	del c1 "$(l3 '{"bridge":"123456789012345","isGateway":true}')"
	add c1 "$(l3 '{"bridge":"br.5","isGateway":true}')"
	same "accept_ra" 0 "$(host cat /proc/sys/net/ipv6/conf/br.5/accept_ra)"
}

# together N CONFIG: N ADDs for c1..cN at the same moment; their outputs in $T/pI/stdout.
together() {
	local i pids=()
	for ((i = 1; i <= $1; i++)); do
		host test -e "/run/netns/c$i" || netns "c$i"
		mkdir "$T/p$i"
	done
	for ((i = 1; i <= $1; i++)); do
		(
			T=$T/p$i
			wait_for 60 test -e "$T/../go"
			cni ADD bridge "c$i" <<<"$2"
			echo "$status" >"$T/status"
		) 3>&- &
		pids+=($!)
	done
	touch "$T/go"
	wait "${pids[@]}"
	for ((i = 1; i <= $1; i++)); do
		[ "$(<"$T/p$i/status")" = 0 ] || { cat "$T/p$i/stdout" >&2 && return 1; }
	done
}

@test "two first ADDs at the same moment" {
	together 2 "$(l3 '{"isGateway":true}')"
	same ports 2 "$(ports)"
	# The Go plugin's bridge takes its address from the ports until it has a gateway.
	! is_cnibox || same "MACs of the bridge" "$(mac_of br0)" \
		"$(jq -r '.interfaces[0].mac' "$T"/p*/stdout | sort -u)"
	same "addresses of the bridge" 10.1.0.1/24 "$(addrs host br0)"
	same leases '10.1.0.2 10.1.0.3' "$(leases)"
	serve c1 80
	same answer c1 "$(ask c2 tcp "$(addrs c1 eth0 | sed 's,/.*,,')" 80 | cut -d' ' -f1)"
}

@test "ten first ADDs at the same moment, then ten DELs" {
	local i c pids=()
	c=$(dual '{"isDefaultGateway":true}')
	together 10 "$c"
	same ports 10 "$(ports)"
	# The Go plugin's bridge takes its address from the ports until it has a gateway.
	! is_cnibox || same "MACs of the bridge" "$(mac_of br0)" \
		"$(jq -r '.interfaces[0].mac' "$T"/p*/stdout | sort -u)"
	same addresses 10 "$(jq -r '.ips[0].address' "$T"/p*/stdout | sort -u | wc -l)"
	same "addresses of the bridge" "10.1.0.1/24 fd00:1::1/64" "$(addrs host br0)"
	for i in {1..10}; do
		(T=$T/p$i && del "c$i" "$c") 3>&- &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i"
	done
	nothing_left br0
}
