# bridge: CHECK, GC and STATUS.

load bridge

# ---- CHECK ------------------------------------------------------------------------------------

@test "CHECK is content with what ADD made" {
	local c
	c=$(l3 '{"isDefaultGateway":true,"hairpinMode":true,"mtu":1400}')
	add c1 "$c"
	check "$c" c1
	same output '' "$output"
	c=$(dual '{"isDefaultGateway":true,"bridge":"br1","name":"net2"}')
	add c2 "$c"
	check "$c" c2
}

@test "CHECK of layer 2" {
	only_cnibox "asks IPAM although there is none"
	add c1 "$(l2)"
	check "$(l2)" c1
}

@test "CHECK is passed to IPAM, and its refusal on" {
	local c
	c=$(fake '{"ips":[{"address":"10.1.0.9/24"}]}')
	add c1 "$c"
	check "$c" c1
	same calls $'ADD c1 eth0\nCHECK c1 eth0' "$(<"$T/fake.log")"
	refuse CHECK
	fails any 'no more; really' CHECK bridge c1 <<<"$(with_prev "$c" c1)"
}

@test "CHECK needs prevResult and a spec version that has it" {
	add c1 "$(l3)"
	fails 7 'Required prevResult missing' CHECK bridge c1 <<<"$(l3)"
	fails 1 'config version does not allow CHECK' CHECK bridge c1 <<<"$(VERSION=0.3.1 l3)"
}

@test "CHECK sees that the container's interface is gone, another or of another kind" {
	local c
	c=$(l3 '{"isGateway":true}')
	add c1 "$c"
	mismatch "Mac" "$c" c1 '.interfaces[2].mac = "02:00:00:00:00:99"'
	mismatch "Sandbox in prevResult .*doesn't match configured netns" "$c" c1 '.interfaces[2].sandbox = "/other"'
	mismatch . "$c" c1 '.interfaces[2].name = "eth7"'
	inside c1 ip link del eth0
	mismatch 'eth0.* not found|eth0' "$c" c1
	inside c1 ip link add eth0 type bridge
	mismatch . "$c" c1
}

@test "CHECK sees that the bridge is gone, another or not in the result" {
	add c1 "$(l3)"
	mismatch . "$(l3)" c1 '.interfaces[0].mac = "02:00:00:00:00:99"'
	mismatch . "$(l3)" c1 '.interfaces[0].name = "br7"'
	mismatch . "$(l3)" c1 'del(.interfaces[0]) | .ips[0].interface = 1'
	host ip link del br0
	mismatch 'br0' "$(l3)" c1
	host ip link add br0 type veth peer name other
	mismatch . "$(l3)" c1
}

@test "CHECK sees that the port left the bridge, or is not the one of the result" {
	local c
	c=$(l3 '{"isGateway":true}')
	add c1 "$c"
	mismatch . "$c" c1 '.interfaces[1].name = "veth77777777"'
	mismatch . "$c" c1 '.interfaces[1].mac = "02:00:00:00:00:99"'
	host ip link set "$port" nomaster
	mismatch 'CNI veth created for bridge br0 was not found' "$c" c1
	host ip link add br9 type bridge
	host ip link set "$port" master br9
	mismatch 'CNI veth created for bridge br0 was not found' "$c" c1
}

@test "CHECK sees port settings that differ" {
	only_cnibox "does not look at them"
	add c1 "$(l3)"
	host bridge link set dev "$port" hairpin on
	mismatch 'hairpin' "$(l3)" c1
	check "$(l3 '{"hairpinMode":true}')" c1
	host bridge link set dev "$port" hairpin off
	host bridge link set dev "$port" isolated on
	mismatch 'isolation' "$(l3)" c1
}

@test "CHECK sees that an address is gone or has another length" {
	add c1 "$(l3)"
	inside c1 ip addr add 10.1.0.77/24 dev eth0
	check "$(l3)" c1
	inside c1 ip addr del 10.1.0.2/24 dev eth0
	inside c1 ip addr add 10.1.0.2/16 dev eth0
	mismatch 'Failed to match addr' "$(l3)" c1
}

@test "CHECK sees that a route is gone" {
	local c
	c=$(l3 '{"isDefaultGateway":true,"ipam":{"routes":[{"dst":"10.7.0.0/16","gw":"10.1.0.1"}]}}')
	add c1 "$c"
	check "$c" c1
	inside c1 ip route replace default via 10.1.0.50
	check "$c" c1
	inside c1 ip route del 10.7.0.0/16
	mismatch 'Expected Route .*10.7.0.0(/16| Mask:ffff0000).* not found in routing table' "$c" c1
	inside c1 ip route add 10.7.0.0/16 via 10.1.0.1
	inside c1 ip route del default
	mismatch 'not found in routing table' "$c" c1
}

@test "CHECK: /32 and /128 addresses are fine" {
	only_cnibox "wants a route to the network"
	local c
	c=$(fake '{"ips":[{"address":"10.1.0.9/32"},{"address":"fd00:1::9/128"}]}')
	add c1 "$c"
	check "$c" c1
}

@test "CHECK sees that promiscMode is gone, and no sniffer disturbs it" {
	local c
	c=$(l3 '{"promiscMode":true}')
	add c1 "$c"
	check "$c" c1
	host ip link set br0 promisc off
	mismatch . "$c" c1
	if is_cnibox; then
		host ip link set br0 promisc on
		check "$(l3)" c1
	fi
}

@test "CHECK: the MAC of a bridge that is not ours may change" {
	only_cnibox "compares it, though it follows the ports"
	taken_bridge
	add c1 "$(l3)"
	host ip link add p0 address 00:00:00:00:00:01 type veth peer name p1
	host ip link set p0 master br0
	check "$(l3)" c1
}

# ---- GC and STATUS ----------------------------------------------------------------------------

# valid CONFIG ID...: the GC config when these containers' eth0 are valid.
valid() {
	jq -c --args '.["cni.dev/valid-attachments"] = [$ARGS.positional[] | {containerID: ., ifname: "eth0"}]
		' "${@:2}" <<<"$1"
}

@test "GC removes exactly what is stale, of its own network" {
	only_cnibox "has no GC"
	local one two
	VERSION=1.1.0
	one=$(l3 '{"isGateway":true,"ipMasq":true}')
	two=$(l3 '{"name":"net2","bridge":"br1","ipam":{"subnet":"10.2.0.0/24"}}')
	for c in c1 c2 c3; do
		add $c "$one"
		add $c "$two" net2
	done
	add c1 "$one" other0
	ok GC bridge '' <<<"$(valid "$one" c1)"
	same output '' "$output"
	same ports "1 3" "$(ports br0) $(ports br1)"
	same leases "10.1.0.2" "$(leases)"
	same "leases of net2" "10.2.0.2 10.2.0.3 10.2.0.4" \
		"$(host sh -c 'ls /var/lib/cni/networks/net2 | grep ^10' | xargs)"
	inside c1 ip link show eth0
	inside c1 sh -c '! ip link show other0'
	for c in c2 c3; do
		inside $c sh -c '! ip link show eth0'
		inside $c ip link show net2
	done
	serve host 80
	same answer "host 10.1.0.2" "$(ask c1 tcp 10.1.0.1 80)"
	check "$one" c1
	ok GC bridge '' <<<"$(valid "$one" c1)"
}

@test "GC with nothing valid takes the bridge that we made along, and no other" {
	only_cnibox "has no GC"
	local c
	VERSION=1.1.0
	c=$(l3 '{"isGateway":true}')
	add c1 "$c"
	ok GC bridge '' <<<"$(valid "$c")"
	nothing_left
	taken_bridge
	add c1 "$c"
	ok GC bridge '' <<<"$(valid "$c")"
	nothing_left br0
	host ip link del br0
	add c1 "$c"
	add c2 "$(l3 '{"name":"net2"}')"
	ok GC bridge '' <<<"$(valid "$c")"
	same ports 1 "$(ports)"
	inside c2 ip link show eth0
}

@test "GC when there is nothing at all" {
	only_cnibox "has no GC"
	VERSION=1.1.0
	ok GC bridge '' <<<"$(valid "$(l3)" c1)"
	ok GC bridge '' <<<"$(valid "$(l2)")"
	fails 1 'config version does not allow GC' GC bridge '' <<<"$(VERSION=1.0.0 l3)"
	nothing_left
}

@test "GC goes on when IPAM fails, and reports it; many at once" {
	only_cnibox "has no GC"
	local c i
	VERSION=1.1.0
	for i in {1..12}; do
		c=$(fake '{"ips":[{"address":"10.1.0.'$i'/24"}]}')
		add c$i "$c"
	done
	refuse GC
	fails any 'no more' GC bridge '' <<<"$(valid "$c" c5 c7)"
	same ports 2 "$(ports)"
	inside c5 ip link show eth0
	inside c7 ip link show eth0
}

@test "STATUS: IPAM's answer, or success without IPAM" {
	only_cnibox "newer than release 1.1.1"
	local c
	VERSION=1.1.0
	ok STATUS bridge '' <<<"$(l2)"
	ok STATUS bridge '' <<<"$(l3)"
	c=$(fake '{}')
	ok STATUS bridge '' <<<"$c"
	same calls 'STATUS  ' "$(<"$T/fake.log")"
	printf '%s' '{"code":50,"msg":"not yet"}' >"$T/refuse.STATUS"
	fails 50 'not yet' STATUS bridge '' <<<"$c"
	fails any 'failed to find plugin' STATUS bridge '' <<<"$(l2 '{"ipam":{"type":"nowhere"}}')"
	fails 1 'config version does not allow STATUS' STATUS bridge '' <<<"$(VERSION=1.0.0 l2)"
	nothing_left
}
