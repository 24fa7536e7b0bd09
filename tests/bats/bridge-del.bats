# bridge: DEL, whatever is left, and with the Go plugin beside.

load bridge

# ---- DEL --------------------------------------------------------------------------------------

@test "DEL with neither namespace nor prevResult" {
	add c1 "$(l3 '{"isGateway":true}')"
	NETNS='' ok DEL bridge c1 <<<"$(l3 '{"isGateway":true}')"
	same output '' "$output"
	same leases '' "$(leases)"
	! is_cnibox || { nothing_left br0 && inside c1 sh -c '! ip link show eth0'; }
}

@test "DEL twice, and of what was never there" {
	add c1 "$(l3)"
	del c1 "$(l3)"
	del c1 "$(l3)"
	netns c2
	del c2 "$(l3)"
	NETNS='' ok DEL bridge c3 <<<"$(l3)"
	nothing_left br0
	same output '' "$output"
}

@test "DEL when the namespace is gone" {
	add c1 "$(l3)"
	host ip netns del c1
	del c1 "$(l3)"
	nothing_left br0
}

@test "DEL when the namespace's path is a file that was left behind" {
	only_cnibox "fails and keeps the address"
	add c1 "$(l3)"
	host umount /run/netns/c1
	host test -f /run/netns/c1
	del c1 "$(l3)"
	nothing_left br0
}

@test "DEL when the namespace is not to be entered: the rest is done" {
	only_cnibox "keeps the address"
	add c1 "$(l3)"
	NETNS=/proc/self/ns/uts ok DEL bridge c1 <<<"$(l3)"
	nothing_left br0
}

@test "DEL when the interface is gone from the container" {
	add c1 "$(l3)"
	inside c1 ip link del eth0
	del c1 "$(l3)"
	nothing_left br0
}

@test "DEL when the interface was renamed or moved away" {
	only_cnibox "does not find it"
	add c1 "$(l3)"
	netns c9
	inside c1 ip link set eth0 down
	inside c1 ip link set eth0 name moved
	inside c1 ip link set moved netns "$(host readlink -f /run/netns/c9)" 2>/dev/null || :
	del c1 "$(l3)"
	nothing_left br0
}

@test "DEL when the bridge is gone" {
	add c1 "$(l3)"
	host ip link del br0
	del c1 "$(l3)"
	nothing_left
}

@test "DEL reports that IPAM failed, after everything else was done" {
	local c
	c=$(fake '{"ips":[{"address":"10.1.0.9/24"}]}')
	add c1 "$c"
	refuse DEL
	fails any 'no more' DEL bridge c1 <<<"$c"
	inside c1 sh -c '! ip link show eth0'
	nothing_left br0
	rm "$T/refuse.DEL"
	del c1 "$c"
}

@test "DEL leaves other attachments and other networks alone" {
	local other
	other=$(l3 '{"name":"net2","bridge":"br1","ipam":{"subnet":"10.2.0.0/24"}}')
	add c1 "$(l3)"
	add c2 "$(l3)"
	add c1 "$other" net2
	del c1 "$(l3)"
	inside c1 ip link show net2
	inside c2 ip link show eth0
	same ports "1 1" "$(ports br0) $(ports br1)"
}

@test "DEL does not take an interface that another network made" {
	only_cnibox "deletes whatever has the name"
	add c1 "$(l3)"
	# The ADD of a second network failed because of the name; its DEL follows.
	fails 102 'already exists' ADD bridge c1 <<<"$(l3 '{"name":"net2"}')"
	del c1 "$(l3 '{"name":"net2"}')"
	inside c1 ip link show eth0
	same ports 1 "$(ports)"
	del c1 "$(l3)"
	nothing_left br0
}

@test "DEL does not take an interface that is no veth" {
	only_cnibox "deletes whatever has the name"
	netns c1
	inside c1 ip link add eth0 type bridge
	del c1 "$(l3)"
	inside c1 ip link show eth0
}

@test "DEL of what the Go plugin made" {
	only_cnibox "is about both"
	need_go
	local c
	c=$(dual '{"isDefaultGateway":true}')
	netns c1
	CNI_PATH=$GO_DIR ok ADD "$GO_DIR/bridge" c1 <<<"$c"
	del c1 "$c"
	nothing_left br0
	inside c1 sh -c '! ip link show eth0'
}

@test "DEL by the Go plugin of what we made" {
	only_cnibox "is about both"
	need_go
	local c
	c=$(dual '{"isDefaultGateway":true}')
	add c1 "$c"
	CNI_PATH=$GO_DIR ok DEL "$GO_DIR/bridge" c1 <<<"$c"
	nothing_left br0
}

@test "both implementations side by side on one bridge" {
	only_cnibox "is about both"
	need_go
	local c
	c=$(l3 '{"isDefaultGateway":true}')
	netns c1
	CNI_PATH=$GO_DIR ok ADD "$GO_DIR/bridge" c1 <<<"$c"
	add c2 "$c"
	is '.ips[0].address' 10.1.0.3/24
	netns c3
	CNI_PATH=$GO_DIR ok ADD "$GO_DIR/bridge" c3 <<<"$c"
	is '.ips[0].address' 10.1.0.4/24
	serve c1 80
	serve host 80
	same answer "c1 10.1.0.3" "$(ask c2 tcp 10.1.0.2 80)"
	same answer "c1 10.1.0.4" "$(ask c3 tcp 10.1.0.2 80)"
	same answer "host 10.1.0.4" "$(ask c3 tcp 10.1.0.1 80)"
	check "$c" c2
	printf '%s' "$output" >/dev/null
}

@test "CHECK of what the Go plugin made" {
	only_cnibox "is about both"
	need_go
	local c
	c=$(l3 '{"isDefaultGateway":true}')
	netns c1
	CNI_PATH=$GO_DIR ok ADD "$GO_DIR/bridge" c1 <<<"$c"
	printf '%s' "$output" >"$T/result-c1-eth0"
	check "$c" c1
}

@test "CHECK by the Go plugin of what we made" {
	only_cnibox "is about both"
	need_go
	local c
	c=$(l3 '{"isDefaultGateway":true}')
	add c1 "$c"
	CNI_PATH=$GO_DIR ok CHECK "$GO_DIR/bridge" c1 <<<"$(with_prev "$c" c1)"
}
