# ips[].interface in a prevResult, or in what another plugin printed: an index that names no interface
# of the result is none of our business. It is kept as it was, and the address counts as one that
# belongs to no interface.

load helpers
load cnitool.bash

setup() { sandbox; }
teardown() { sandbox_end; }

VETH=b7a7b7a7b7

# pair: the container c1 with eth0, 10.1.0.2/24, and its host end; bandwidth looks for both.
pair() {
	netns c1
	host sh -c 'ip link add "$1" type veth peer name eth0 netns c1 && ip link set "$1" up
		ip -n c1 addr add 10.1.0.2/24 dev eth0 && ip -n c1 link set eth0 up' pair "$VETH"
}

# prev INDEX: a result whose address has this interface index.
prev() {
	jq -nc --argjson i "$1" --arg veth "$VETH" '{cniVersion: "1.0.0", interfaces: [{name: $veth},
			{name: "eth0", sandbox: "/run/netns/c1"}],
		ips: [{address: "10.1.0.2/24", interface: $i}]}'
}

# config TYPE INDEX KEYS
config() {
	jq -nc --arg type "$1" --argjson prev "$(prev "$2")" --argjson keys "$3" \
		'{cniVersion: "1.0.0", name: "net", type: $type, prevResult: $prev} + $keys'
}

declare -gA KEYS=([loopback]='{}' [tuning]='{"mtu":1400}' [bandwidth]='{"ingressRate":8000000,"ingressBurst":8000000}'
	[portmap]='{"runtimeConfig":{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}}')

# chained TYPE: ADD, CHECK and DEL of a plugin in a chain.
chained() {
	local index
	need_applet "$1"
	pair
	for index in -1 2 99 -2147483648; do
		ok ADD "$1" c1 <<<"$(config "$1" "$index" "${KEYS[$1]}")"
		is .ips "[{\"address\":\"10.1.0.2/24\",\"interface\":$index}]"
		# The Go portmap's CHECK wants an IPv6 address too; the Go bandwidth's DEL leaves the host end.
		is_cnibox || [[ $1 = loopback || $1 = tuning ]] || return 0
		ok CHECK "$1" c1 <<<"$(config "$1" "$index" "${KEYS[$1]}")"
		ok DEL "$1" c1 <<<"$(config "$1" "$index" "${KEYS[$1]}")"
	done
}

@test "loopback: an index that names no interface passes" { chained loopback; }
@test "tuning: an index that names no interface passes" { chained tuning; }
@test "portmap: an index that names no interface passes" { chained portmap; }
@test "bandwidth: an index that names no interface passes" { chained bandwidth; }

@test "portmap: the address of no interface is the container's" {
	only_cnibox "its rules are not ours to read"
	need_applet portmap
	pair
	ok ADD portmap c1 <<<"$(config portmap -1 "${KEYS[portmap]}")"
	host nft list ruleset | grep -q '10\.1\.0\.2'
}

@test "an index keeps its value in every version that has one" {
	need_applet loopback
	only_cnibox "the Go plugin labels the shape of 1.0.0 with any version"
	netns c1
	local v
	for v in 0.3.0 0.3.1 0.4.0 1.0.0 1.1.0; do
		ok ADD loopback c1 <<<"$(config loopback -7 '{}' | jq -c --arg v $v '.cniVersion = $v
			| .prevResult.cniVersion = $v')"
		is '.ips[0].interface' -7
	done
	ok ADD loopback c1 <<<'{"cniVersion":"0.2.0","name":"net","type":"loopback",
		"prevResult":{"ip4":{"ip":"10.1.0.2/24"}}}'
	is '.ip4' '{"ip":"10.1.0.2/24"}'
}

@test "cnitool takes such a result, and gives it to DEL" {
	tool_setup
	netns c1
	double odd tail
	prev -1 >"$T/odd.result"
	prev 9 >"$T/tail.result"
	list net "odd tail"
	works add net /run/netns/c1
	is '.ips[0].interface' 9
	given tail ADD '.prevResult.ips[0].interface' -1
	works del net /run/netns/c1
	given odd DEL '.prevResult.ips[0].interface' 9
	given tail DEL '.prevResult.ips[0].interface' 9
}
