# loopback: lo of the container, up.

load helpers

setup() {
	need_applet loopback
	sandbox
	host ip netns add c1
}
teardown() { sandbox_end; }

CONF='{"cniVersion":"1.0.0","name":"lo","type":"loopback"}'

conf() { jq -n --arg v "$1" '{cniVersion: $v, name: "lo", type: "loopback"}'; }
lo_is_up() { inside c1 ip -j link show lo | jq -e '.[0].flags | index("UP") != null' >/dev/null; }

@test "ADD brings lo up and reports its addresses" {
	never lo_is_up
	ok ADD loopback c1 lo <<<"$CONF"
	lo_is_up
	is 'del(.dns)' '{"cniVersion":"1.0.0",
		"interfaces":[{"name":"lo","mac":"00:00:00:00:00:00","sandbox":"/run/netns/c1"}],
		"ips":[{"interface":0,"address":"127.0.0.1/8"},{"interface":0,"address":"::1/128"}]}'
	inside c1 ping -c1 -W2 127.0.0.1
	inside c1 ping -c1 -W2 ::1
	same "the node's lo" true "$(host ip -j link show lo | jq '.[0].flags | index("UP") != null')"
}

@test "it is lo, whatever CNI_IFNAME says" {
	ok ADD loopback c1 eth0 <<<"$CONF"
	is '.interfaces[0].name' '"lo"'
	lo_is_up
	ok DEL loopback c1 eth0 <<<"$CONF"
	never lo_is_up
}

@test "ADD again says the same" {
	ok ADD loopback c1 lo <<<"$CONF"
	local first=$output
	ok ADD loopback c1 lo <<<"$CONF"
	same result "$first" "$output"
}

@test "1.1.0 has the same shape, and the MTU" {
	only_cnibox "Debian's Go plugins stop at 1.0.0"
	ok ADD loopback c1 lo <<<"$(conf 1.1.0)"
	is '[.cniVersion, (.interfaces | length), [.ips[].address]]' \
		'["1.1.0",1,["127.0.0.1/8","::1/128"]]'
	is '.interfaces[0].mtu' 65536
}

@test "older versions get their own shape" {
	only_cnibox "the Go plugin labels the shape of 1.0.0 with any version"
	local v
	for v in 0.3.0 0.3.1 0.4.0; do
		ok ADD loopback c1 lo <<<"$(conf $v)"
		is . "{\"cniVersion\":\"$v\",
			\"interfaces\":[{\"name\":\"lo\",\"mac\":\"00:00:00:00:00:00\",\"sandbox\":\"/run/netns/c1\"}],
			\"ips\":[{\"version\":\"4\",\"interface\":0,\"address\":\"127.0.0.1/8\"},
				{\"version\":\"6\",\"interface\":0,\"address\":\"::1/128\"}],\"dns\":{}}"
	done
	for v in 0.1.0 0.2.0; do
		ok ADD loopback c1 lo <<<"$(conf $v)"
		is . "{\"cniVersion\":\"$v\",\"ip4\":{\"ip\":\"127.0.0.1/8\"},\"ip6\":{\"ip\":\"::1/128\"},\"dns\":{}}"
	done
}

@test "a namespace without IPv6 has no ::1" {
	inside c1 sh -c 'echo 1 >/proc/sys/net/ipv6/conf/lo/disable_ipv6' || skip "no IPv6"
	ok ADD loopback c1 lo <<<"$CONF"
	is '[.ips[].address]' '["127.0.0.1/8"]'
}

@test "behind another plugin its result passes through" {
	local prev='{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"/run/netns/c1"}],
		"ips":[{"interface":0,"address":"10.0.0.2/24","gateway":"10.0.0.1"}],
		"routes":[{"dst":"0.0.0.0/0"}],"dns":{"domain":"x"}}'
	ok ADD loopback c1 eth0 <<<"$(jq --argjson p "$prev" '.prevResult = $p' <<<"$CONF")"
	is 'if .dns == {} then del(.dns) else . end' "$prev"
	lo_is_up
	ok CHECK loopback c1 eth0 <<<"$(jq --argjson p "$prev" '.prevResult = $p' <<<"$CONF")"
}

@test "a result of another shape is refused before lo is touched" {
	fails any 'prevResult|result type' ADD loopback c1 lo <<<"$(jq \
		'.prevResult = {"cniVersion":"0.4.0"}' <<<"$CONF")"
	never lo_is_up
}

@test "another's address on lo does no harm" {
	only_cnibox "the Go plugin fails, with lo up"
	inside c1 ip addr add 10.99.0.1/32 dev lo
	inside c1 ip addr add fd00::1/128 dev lo
	ok ADD loopback c1 lo <<<"$CONF"
	is '[.ips[].address]' '["127.0.0.1/8","::1/128"]'
	ok DEL loopback c1 lo <<<"$CONF"
	inside_is c1 '[.[].addr_info[].local] | index("10.99.0.1") != null' true ip -j -4 addr show lo
}

@test "CHECK fails while lo is down" {
	fails 101 'interface is down' CHECK loopback c1 lo <<<"$CONF"
	ok ADD loopback c1 lo <<<"$CONF"
	ok CHECK loopback c1 lo <<<"$CONF"
	inside c1 ip link set lo down
	fails 101 'interface is down' CHECK loopback c1 lo <<<"$CONF"
	fails 1 'does not allow CHECK' CHECK loopback c1 lo <<<"$(conf 0.3.1)"
}

@test "CHECK misses the addresses that the result gave to lo" {
	only_cnibox "the Go plugin looks at the state only"
	local prev
	ok ADD loopback c1 lo <<<"$CONF"
	prev=$output
	ok CHECK loopback c1 lo <<<"$(jq --argjson p "$prev" '.prevResult = $p' <<<"$CONF")"
	inside c1 ip addr del 127.0.0.1/8 dev lo
	fails 101 'no address 127.0.0.1/8' CHECK loopback c1 lo \
		<<<"$(jq --argjson p "$prev" '.prevResult = $p' <<<"$CONF")"
}

@test "DEL sets lo down, and asks for nothing" {
	ok ADD loopback c1 lo <<<"$CONF"
	ok DEL loopback c1 lo <<<"$CONF"
	never lo_is_up
	ok DEL loopback c1 lo <<<"$CONF"
	NETNS='' ok DEL loopback c1 lo <<<"$CONF"
	NETNS=/run/netns/gone ok DEL loopback c1 lo <<<"$CONF"
	host ip netns del c1
	ok DEL loopback c1 lo <<<"$CONF"
	nothing_left
}

@test "DEL of a path that is no namespace has nothing to do" {
	only_cnibox "the Go plugin fails"
	NETNS=/etc/passwd ok DEL loopback c1 lo <<<"$CONF"
	NETNS=/run/netns ok DEL loopback c1 lo <<<"$CONF"
}

@test "a namespace that is none is an error of ADD and CHECK" {
	NETNS=/run/netns/gone fails 8 'no such file' ADD loopback c1 lo <<<"$CONF"
	NETNS=/etc/passwd fails 8 'unknown FS magic' ADD loopback c1 lo <<<"$CONF"
	NETNS=/run/netns/gone fails 8 '.' CHECK loopback c1 lo <<<"$CONF"
}

@test "the node's own namespace is refused before anything happens" {
	only_cnibox "the Go plugin does its work first and prints two documents"
	NETNS=/proc/self/ns/net fails 8 'should not be the same' ADD loopback c1 lo <<<"$CONF"
	NETNS=/proc/self/ns/net fails 8 'should not be the same' DEL loopback c1 lo <<<"$CONF"
	same "the node's lo" true "$(host ip -j link show lo | jq '.[0].flags | index("UP") != null')"
}

@test "a result that cannot be printed takes lo down again" {
	only_cnibox "the Go plugin leaves it up"
	run host env CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/c1 CNI_IFNAME=lo CNI_PATH=/ \
		sh -c 'echo "$1" | "$2" >/dev/full' sh "$CONF" "$CNI_PLUGIN_DIR/loopback"
	[ "$status" -ne 0 ]
	never lo_is_up
}

@test "GC and STATUS have nothing to do" {
	only_cnibox "Debian's Go plugins stop at 1.0.0"
	ok GC loopback - <<<"$(conf 1.1.0)"
	ok STATUS loopback - <<<"$(conf 1.1.0)"
	same output '' "$output"
}
