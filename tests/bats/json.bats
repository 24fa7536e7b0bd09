# What a document may contain that nobody reads: the Go plugins accept it, so do we, in every verb.
# What is used and cannot be represented is refused.

load helpers
load cnitool.bash

setup() { sandbox; }
teardown() { sandbox_end; }

# odd NAME: members of an object, with a comma behind.
odd() {
	case $1 in
	utf8) printf '"\xff\xfe": "\xc3", "a": ["\xed\xa0\x80"], ' ;;
	surrogate) printf '%s' '"\ud800": "\udc00x", ' ;;
	nul) printf '%s' '"a\u0000b": "\u0000", "c": ["x\u0000"], ' ;;
	deep) printf '"x": %s1%s, ' "$(printf '{"a":[%.0s' {1..4900})" "$(printf ']}%.0s' {1..4900})" ;;
	twice) printf '%s' '"x": 1, "x": {}, "X": null, ' ;;
	esac
}
ODD='utf8 surrogate nul deep twice'

# result: what the plugin before printed, with odd members at every level.
result() {
	printf '{%s"cniVersion": "1.0.0", "interfaces": [{%s"name": "eth0", "sandbox": "/run/netns/c1"}],
		"ips": [{%s"address": "10.1.0.2/24", "interface": 0}], "routes": [{%s"dst": "0.0.0.0/0"}]}' \
		"$1" "$1" "$1" "$1"
}

# calls TYPE KEYS: ADD, CHECK and DEL with each kind of odd members, in the config and in prevResult.
calls() {
	local kind o config
	need_applet "$1"
	netns c1
	host sh -c 'ip link add v1 type veth peer name eth0 netns c1 && ip link set v1 up &&
		ip -n c1 addr add 10.1.0.2/24 dev eth0 && ip -n c1 link set eth0 up'
	for kind in $ODD; do
		o=$(odd $kind)
		config=$T/config.$kind
		printf '{%s"cniVersion": "1.0.0", "name": "net", "type": "%s", %s, "prevResult": %s}' \
			"$o" "$1" "$2" "$(result "$o")" >"$config"
		ok ADD "$1" c1 <"$config"
		# jq gives up at the depth of what is passed on.
		[[ $output == *'"address": "10.1.0.'* ]] || show "no address"
		case $1 in
		host-local) ;; # gives out the next address each time
		portmap) ! is_cnibox || ok CHECK "$1" c1 <"$config" ;; # Go's wants an IPv6 address, too
		*) ok CHECK "$1" c1 <"$config" ;;
		esac
		ok DEL "$1" c1 <"$config"
	done
}

@test "loopback: what nobody reads" { calls loopback '"k": 1'; }
@test "tuning: what nobody reads" { calls tuning '"mtu": 1400'; }
@test "host-local: what nobody reads" {
	calls host-local '"ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24"}]]}'
}
@test "portmap: what nobody reads" {
	calls portmap '"runtimeConfig": {"portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]}'
}

@test "malformed documents are still refused" {
	need_applet loopback
	netns c1
	local bad
	for bad in '"\x"' '"\u12g4"' '"a' "$(printf '"\t"')" '[1,]' '01' '1.' 'tru' "'a'" 'NaN' '{1:2}' \
		"$(printf '[%.0s' {1..10001})$(printf ']%.0s' {1..10001})"; do
		fails 6 'unmarshall network config' ADD loopback c1 \
			<<<"{\"cniVersion\": \"1.0.0\", \"name\": \"net\", \"x\": $bad}"
		fails 6 'unmarshall network config' DEL loopback c1 \
			<<<"{\"cniVersion\": \"1.0.0\", \"name\": \"net\", \"x\": $bad}"
	done
}

@test "null after a plain value leaves it, after a list takes it back" {
	need_applet tuning
	netns c1
	local conf='{"cniVersion":"1.0.0","name":"net","name":null,"type":"tuning","sysctl":{"net/nope":"1"},"Sysctl":null,
		"prevResult":{"cniVersion":"1.0.0","interfaces":[]}}'
	ok ADD tuning c1 lo <<<"$conf"
	ok DEL tuning c1 lo <<<"$conf"
}

@test "a NUL character does not cut what is used" {
	need_applet tuning host-local
	netns c1
	local prev='"prevResult":{"cniVersion":"1.0.0","interfaces":[]}'
	fails 6 . ADD tuning c1 lo <<<'{"cniVersion":"1.0.0","name":"net\u0000x","type":"tuning",'"$prev"'}'
	fails any . ADD tuning c1 lo <<<'{"cniVersion":"1.0.0","name":"net","type":"tuning",
		"sysctl":{"net.ipv4.conf.IFNAME.forwarding\u0000x":"1"},'"$prev"'}'
	inside_is c1 . 0 ip netns exec c1 cat /proc/sys/net/ipv4/conf/lo/forwarding
	fails any . ADD tuning c1 lo <<<'{"cniVersion":"1.0.0","name":"net","type":"tuning",
		"sysctl":{"net.ipv4.conf.IFNAME.forwarding":"1\u0000"},'"$prev"'}'
	fails any . ADD host-local c1 <<<'{"cniVersion":"1.0.0","name":"net","ipam":{"type":"host-local",
		"dataDir":"/var/lib/cni/x\u0000/y","ranges":[[{"subnet":"10.1.0.0/24"}]]}}'
	host test ! -e /var/lib/cni/x
}

@test "texts that are passed on keep a NUL character" {
	need_applet tuning
	netns c1
	ok ADD tuning c1 lo <<<'{"cniVersion":"1.0.0","name":"net","type":"tuning","prevResult":{"cniVersion":"1.0.0",
		"interfaces":[{"name":"a\u0000b","sandbox":"\u0000"}],"dns":{"domain":"x\u0000","search":["\ud800"]}}}'
	is '[.interfaces[0].name, .interfaces[0].sandbox, .dns.domain, .dns.search[0] | explode]' \
		'[[97,0,98],[0],[120,0],[65533]]'
}

@test "a field of 1.1.0 in an older result is not looked at when it is something else" {
	need_applet tuning
	netns c1
	ok ADD tuning c1 lo <<<'{"cniVersion":"1.0.0","name":"net","type":"tuning","prevResult":{"cniVersion":"1.0.0",
		"interfaces":[{"name":"eth0","mtu":"x","pciID":5}],"routes":[{"dst":"0.0.0.0/0","mtu":"x"}]}}'
	is .interfaces '[{"name":"eth0"}]'
	is .routes '[{"dst":"0.0.0.0/0"}]'
	is_cnibox || return 0
	fails 6 'mtu' ADD tuning c1 lo <<<'{"cniVersion":"1.1.0","name":"net","type":"tuning","prevResult":{
		"interfaces":[{"name":"eth0","mtu":"x"}]}}'
}

@test "0.1.0 and 0.2.0: a result comes back as it was" {
	need_applet tuning
	netns c1
	local v prev
	for v in 0.1.0 0.2.0; do
		for prev in '{"ip4":{"ip":"10.0.0.1/8","routes":[{"dst":"fd00::/8","gw":"fd00::1"},{"dst":"0.0.0.0/0"}]}}' \
			'{"ip6":{"ip":"fd00::1/64","gateway":"fd00::2","routes":[{"dst":"10.0.0.0/8"}]}}' \
			'{"ip4":{"ip":"fd00::1/64"}}' '{"ip4":{"ip":"10.0.0.1/8"},"ip6":{"ip":"10.0.0.2/8"}}' '{}' \
			'{"dns":{"domain":"x"}}'; do
			ok ADD tuning c1 lo <<<"{\"cniVersion\":\"$v\",\"name\":\"net\",\"type\":\"tuning\",\"prevResult\":$prev}"
			is 'del(.cniVersion) | if .dns == {} then del(.dns) else . end' "$prev"
		done
	done
}

@test "cnitool: a network list with what nobody reads" {
	tool_setup
	netns c1
	double a
	local kind
	for kind in $ODD; do
		o=$(odd $kind)
		printf '{%s"cniVersion": "1.0.0", "name": "net", "plugins": [{%s"type": "a"}]}' "$o" "$o" \
			>"$NET/net.conflist"
		result "$o" >"$T/a.result"
		works add net /run/netns/c1
		[[ $output == *'"address": "10.1.0.2/24"'* ]] || show "no address"
		works check net /run/netns/c1
		works del net /run/netns/c1
		called 'ADD a,CHECK a,DEL a'
	done
}
