# bridge beside others: living attachments, bridges, addresses and names that are not this ADD's to
# change, and what a result has to tell about the links it made.

load bridge

# ---- a living attachment ----------------------------------------------------------------------

@test "an ADD of the same container and interface with another namespace leaves the living one alone" {
	local c
	c=$(l3 '{"isGateway":true}')
	add c1 "$c"
	netns other
	serve c1 80
	NETNS=/run/netns/other fails any '' ADD bridge c1 <<<"$c"
	same answer "c1 10.1.0.1" "$(ask host tcp 10.1.0.2 80)"
	check "$c" c1
	same lease 10.1.0.2 "$(leases)"
	is_cnibox || return 0 # leaves an end of a pair there
	inside other sh -c '! ip link show eth0'
}

@test "the same without IPAM: the error names the attachment and says where it lives" {
	only_cnibox "makes a second pair"
	add c1 "$(l2)"
	netns other
	NETNS=/run/netns/other fails 102 'c1.*eth0.*another namespace' ADD bridge c1 <<<"$(l2)"
	check "$(l2)" c1
	inside other sh -c '! ip link show eth0'
	host ip netns del c1
	NETNS=/run/netns/other ok ADD bridge c1 <<<"$(l2)"
}

# ---- addresses of a bridge that was there -----------------------------------------------------

@test "forceAddress: an ADD that fails later puts the former addresses back" {
	only_cnibox "leaves the bridge without"
	host ip link add br0 type bridge
	host ip addr add 10.1.0.9/24 dev br0
	host ip addr add 192.168.7.1/24 dev br0
	host ip addr add fd00:1::77/64 dev br0 nodad
	netns c1
	# The result cannot be printed: by then all has been done.
	CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 CNI_PATH=$CNI_PLUGIN_DIR \
		run host sh -c 'exec "$1" >/dev/full' add "$CNI_PLUGIN_DIR/bridge" \
		<<<"$(dual '{"isGateway":true,"forceAddress":true}')"
	[ "$status" -eq 1 ]
	same "addresses of the bridge" "10.1.0.9/24 192.168.7.1/24 fd00:1::77/64" \
		"$(addrs host br0 | tr ' ' '\n' | sort | xargs)"
	same leases '' "$(leases)"
}

@test "forceAddress: the routes through a former address come back with it" {
	only_cnibox "leaves the bridge without"
	host ip link add br0 type bridge
	host ip link set br0 up
	host ip addr add 10.1.0.9/24 dev br0
	netns c1
	CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 CNI_PATH=$CNI_PLUGIN_DIR \
		run host sh -c 'exec "$1" >/dev/full' add "$CNI_PLUGIN_DIR/bridge" \
		<<<"$(l3 '{"isGateway":true,"forceAddress":true}')"
	[ "$status" -eq 1 ]
	host_is '[.[] | [.dst, .prefsrc]]' '[["10.1.0.0/24","10.1.0.9"]]' ip -j -4 route show dev br0
}

# ---- a bridge that is not ours ----------------------------------------------------------------

@test "a bridge that was there keeps its MAC when containers come and go" {
	local mac i
	only_cnibox "the port's address is random, and may be the lowest"
	host ip link add br0 type bridge
	host ip link add p0 address 52:54:00:00:00:01 type veth peer name p1
	host ip link set p0 master br0 up
	host ip link set br0 up
	mac=$(mac_of br0)
	for i in 1 2 3 4; do
		add "c$i" "$(l2)"
		[[ $(mac_of "$port") == fe:* ]]
		same "MAC of the bridge with c$i" "$mac" "$(mac_of br0)"
	done
	for i in 1 2 3 4; do
		ok DEL bridge "c$i" <<<"$(l2)"
		same "MAC of the bridge without c$i" "$mac" "$(mac_of br0)"
	done
}

# ---- names ------------------------------------------------------------------------------------

@test "a name with % is a template to the kernel: refused, and nothing is made" {
	local before
	netns c1
	before=$(host ip -j link | jq length)
	fails any 'br%d' ADD bridge c1 <<<"$(l2 '{"bridge":"br%d"}')"
	is_cnibox || return 0
	failed 7 'br%d'
	same links "$before" "$(host ip -j link | jq length)"
}

@test "an alternative name as bridge means the link that has it" {
	only_cnibox "takes the name as it is and then cannot find it"
	host ip link add br0 type bridge
	host ip link property add dev br0 altname the-bridge-of-this-node
	host ip link property add dev br0 altname uplink0
	local c
	c=$(l3 '{"bridge":"uplink0","isGateway":true}')
	add c1 "$c"
	is '.interfaces[0].name' br0
	same gateway 10.1.0.1/24 "$(addrs host br0)"
	check "$c" c1
	ok DEL bridge c1 <<<"$c"
	host ip link show br0
}

# ---- said before the work ---------------------------------------------------------------------

@test "an MTU that is too small for IPv6 is refused in words that say so" {
	netns c1
	fails any '' ADD bridge c1 <<<"$(dual '{"mtu":1200}')"
	is_cnibox || return 0
	failed 7 'mtu 1200.*IPv6.*1280'
	nothing_left
	same leases '' "$(leases)"
	add c2 "$(l3 '{"mtu":1200}')"
}

@test "an IPv6 gateway where the host has IPv6 switched off is refused in words that say so" {
	netns c1
	host sh -c 'echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
		echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6'
	fails any '' ADD bridge c1 <<<"$(dual '{"isGateway":true}')"
	is_cnibox || return 0
	[[ $output == *"IPv6 is disabled"*disable_ipv6* ]]
	nothing_left
	same leases '' "$(leases)"
	# Without a gateway on the host IPv6 is the containers' own affair.
	add c2 "$(dual)"
}

# ---- results ----------------------------------------------------------------------------------

@test "the result of 1.1.0 tells the MTU of every link" {
	only_cnibox "1.1.1 does not know 1.1.0"
	VERSION=1.1.0 add c1 "$(VERSION=1.1.0 l3 '{"mtu":1400,"isGateway":true}')"
	is '[.interfaces[].mtu]' '[1400,1400,1400]'
	VERSION=1.1.0 add c2 "$(VERSION=1.1.0 l3 '{"isGateway":true}')"
	# The kernel's default for the new pair; the bridge keeps the smaller one it was made with.
	is '[.interfaces[].mtu]' '[1400,1500,1500]'
	VERSION=1.0.0 add c3 "$(VERSION=1.0.0 l3 '{"isGateway":true}')"
	is '[.interfaces[].mtu]' '[null,null,null]'
}
