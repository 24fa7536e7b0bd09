# static: addresses from config, CNI_ARGS, args and runtimeConfig, which of them counts, their gateways,
# routes and DNS, CHECK and STATUS; and beneath a main plugin.

load helpers

setup() {
	need_applet static
	sandbox
}
teardown() { sandbox_end; }

# conf IPAM [KEYS]: ipam's keys, and keys of the top.
conf() {
	jq -nc --argjson ipam "$1" --argjson keys "${2:-"{}"}" --arg v "${VERSION:-1.0.0}" \
		'{cniVersion: $v, name: "net1", type: "bridge", ipam: ({type: "static"} + $ipam)} * $keys'
}
# one [KEYS]: a config with one address.
one() { conf '{"addresses":[{"address":"10.1.0.5/24","gateway":"10.1.0.1"}]}' "$@"; }
with_prev() { jq -c --argjson r "$2" '.prevResult = ({cniVersion: .cniVersion} + $r)' <<<"$1"; }
ips() { is '[.ips[] | .address + " " + (.gateway // "-")] | join(", ")' "$1"; }

# ---- the config -------------------------------------------------------------------------------

@test "addresses, gateways, routes and DNS of the config, in its order" {
	ok ADD static c1 <<<"$(conf '{
		"addresses": [{"address": "10.1.0.5/24", "gateway": "10.1.0.1"}, {"address": "fd00:1::5/64"},
			{"address": "10.0.0.7/8", "gateway": "192.0.2.1", "version": "4"}],
		"routes": [{"dst": "0.0.0.0/0"}, {"dst": "192.168.0.0/16", "gw": "10.1.0.9", "mtu": 1400}],
		"dns": {"nameservers": ["10.1.0.1"], "domain": "example.net", "search": ["a", "b"],
			"options": ["ndots:2"]}}')"
	ips '10.1.0.5/24 10.1.0.1, fd00:1::5/64 -, 10.0.0.7/8 192.0.2.1'
	is '[.routes[] | [.dst, .gw]]' '[["0.0.0.0/0",null],["192.168.0.0/16","10.1.0.9"]]'
	is .dns '{"nameservers":["10.1.0.1"],"domain":"example.net","search":["a","b"],"options":["ndots:2"]}'
	is '[.interfaces, .ips[0].interface]' '[null,null]'
}

@test "routes with one destination stay two" {
	ok ADD static c1 <<<"$(conf '{"addresses": [{"address": "10.1.0.5/24"}],
		"routes": [{"dst": "0.0.0.0/0", "gw": "10.1.0.1"}, {"dst": "0.0.0.0/0", "gw": "10.1.0.2"}]}')"
	is .routes '[{"dst":"0.0.0.0/0","gw":"10.1.0.1"},{"dst":"0.0.0.0/0","gw":"10.1.0.2"}]'
}

@test "an IPv4-mapped address is IPv4, and keys match in any case" {
	ok ADD static c1 <<<"$(conf '{"Addresses": [{"ADDRESS": "::ffff:10.0.0.5/120", "Gateway": ""}]}')"
	ips '10.0.0.5/24 -'
}

@test "the result has the form of the config's version" {
	VERSION=0.4.0 ok ADD static c1 <<<"$(VERSION=0.4.0 one)"
	is .ips '[{"version":"4","address":"10.1.0.5/24","gateway":"10.1.0.1"}]'
	ok ADD static c1 <<<"$(VERSION=0.2.0 one)"
	is '[.ip4.ip, .ip4.gateway, .ips]' '["10.1.0.5/24","10.1.0.1",null]'
	fails 7 'does not support more than 1 address per family' ADD static c1 \
		<<<"$(VERSION=0.2.0 conf '{"addresses":[{"address":"10.1.0.5/24"},{"address":"10.2.0.5/24"}]}')"
}

@test "no address at all is a result, where the version has room for it" {
	ok ADD static c1 <<<"$(conf '{}')"
	is .ips null
	fails any 'cannot convert: no valid IP addresses' ADD static c1 <<<"$(VERSION=0.2.0 conf '{}')"
}

@test "what is wrong in the config is said" {
	fails 7 "'address' field is expected to be in CIDR notation, got: '10.1.0.5'" ADD static c1 \
		<<<"$(conf '{"addresses":[{"address":"10.1.0.5"}]}')"
	fails 7 "'address' field is expected to be in CIDR notation, got: ''" ADD static c1 \
		<<<"$(conf '{"addresses":[{"gateway":"10.1.0.1"}]}')"
	fails 7 'invalid IP address: nonsense' ADD static c1 \
		<<<"$(conf '{"addresses":[{"address":"10.1.0.5/24","gateway":"nonsense"}]}')"
	fails 7 "IPAM config missing 'ipam' key" ADD static c1 <<<'{"cniVersion":"1.0.0","name":"net1","type":"x"}'
	fails 7 '' ADD static c1 <<<"$(conf '{"addresses":{"address":"10.1.0.5/24"}}')"
	fails 7 '' ADD static c1 <<<"$(conf '{"addresses":[{"address":"10.1.0.5/24","version":4}]}')"
	fails 7 '' ADD static c1 <<<"$(conf '{"dns":{"nameservers":"10.1.0.1"}}')"
	only_cnibox "prints them as null"
	fails 7 'addresses\[1\]' ADD static c1 <<<"$(conf '{"addresses":[{"address":"10.1.0.5/24"},null]}')"
	fails 7 'dst' ADD static c1 <<<"$(conf '{"routes":[{"gw":"10.1.0.1"}]}')"
	fails 7 'routes' ADD static c1 <<<"$(conf '{"routes":[null]}')"
	fails 7 'more than 1024 addresses' ADD static c1 \
		<<<"$(conf "$(jq -nc '{addresses: [range(1025) | {address: "10.1.0.5/24"}]}')")"
}

# ---- at run time ------------------------------------------------------------------------------

@test "CNI_ARGS: IP adds to the config's addresses, GATEWAY is for those of its network" {
	CNI_ARGS='IP=10.2.0.5/24, 10.3.0.5/24,fd00:3::5/64;GATEWAY=10.3.0.1 ,fd00:3::1,10.9.0.1' ok ADD static c1 <<<"$(one)"
	ips '10.1.0.5/24 10.1.0.1, 10.2.0.5/24 -, 10.3.0.5/24 10.3.0.1, fd00:3::5/64 fd00:3::1'
	CNI_ARGS='IP=10.2.0.5/24;GATEWAY=10.2.0.1,10.2.0.2' ok ADD static c1 <<<"$(conf '{}')"
	ips '10.2.0.5/24 10.2.0.2'
	CNI_ARGS='IP=;GATEWAY=;IgnoreUnknown=1;K8S_POD_NAME=x' ok ADD static c1 <<<"$(one)"
	ips '10.1.0.5/24 10.1.0.1'
}

@test "CNI_ARGS: a gateway never changes that of a configured address" {
	CNI_ARGS='GATEWAY=10.1.0.99' ok ADD static c1 <<<"$(conf '{"addresses":[{"address":"10.1.0.5/24"}]}')"
	ips '10.1.0.5/24 -'
}

@test "CNI_ARGS: what is wrong is said" {
	CNI_ARGS='IP=10.1.0.5' fails any "'ip' field is expected to be in CIDR notation, got: '10.1.0.5'" \
		ADD static c1 <<<"$(one)"
	CNI_ARGS='IP=10.1.0.5/24,' fails any "'ip' field is expected to be in CIDR notation, got: ''" \
		ADD static c1 <<<"$(one)"
	CNI_ARGS='GATEWAY=zz' fails any 'invalid gateway address: zz' ADD static c1 <<<"$(one)"
	CNI_ARGS='X=1' fails 4 'ARGS: unknown args \["X=1"\]' ADD static c1 <<<"$(one)"
	CNI_ARGS='IP' fails 4 'ARGS: invalid pair "IP"' ADD static c1 <<<"$(one)"
}

@test "args.cni.ips replaces config and CNI_ARGS, runtimeConfig.ips all of them" {
	CNI_ARGS='IP=10.2.0.5/24' ok ADD static c1 \
		<<<"$(one '{"args":{"cni":{"ips":["10.3.0.5/24","fd00:3::5/64"]}}}')"
	ips '10.3.0.5/24 -, fd00:3::5/64 -'
	CNI_ARGS='IP=10.2.0.5/24' ok ADD static c1 \
		<<<"$(one '{"args":{"cni":{"ips":["10.3.0.5/24"]}},"runtimeConfig":{"ips":["10.4.0.5/24"]}}')"
	ips '10.4.0.5/24 -'
	ok ADD static c1 <<<"$(one '{"args":{"cni":{"ips":[]}},"runtimeConfig":{"ips":null}}')"
	ips '10.1.0.5/24 10.1.0.1'
}

@test "what is replaced is checked, but for the config's own addresses" {
	fails 7 '' ADD static c1 \
		<<<"$(one '{"args":{"cni":{"ips":["10.3.0.5"]}},"runtimeConfig":{"ips":["10.4.0.5/24"]}}')"
	[[ $output == *"an entry in the 'ips' field is NOT in CIDR notation, got: '10.3.0.5'"* ]]
	fails 7 "'ips' field is NOT in CIDR notation, got: '10.4.0.5'" ADD static c1 \
		<<<"$(one '{"runtimeConfig":{"ips":["10.4.0.5"]}}')"
	CNI_ARGS='IP=zz' fails any "'ip' field" ADD static c1 <<<"$(one '{"runtimeConfig":{"ips":["10.4.0.5/24"]}}')"
	ok ADD static c1 <<<"$(conf '{"addresses":[{"address":"whatever"}]}' '{"runtimeConfig":{"ips":["10.4.0.5/24"]}}')"
	ips '10.4.0.5/24 -'
}

@test "a configured gateway serves the run-time addresses of its network" {
	only_cnibox "they have none, so that a container with them has no way out"
	ok ADD static c1 <<<"$(one '{"runtimeConfig":{"ips":["10.1.0.77/24","10.2.0.77/24","fd00:1::77/64"]}}')"
	ips '10.1.0.77/24 10.1.0.1, 10.2.0.77/24 -, fd00:1::77/64 -'
	ok ADD static c1 <<<"$(one '{"args":{"cni":{"ips":["10.1.0.78/16"]}}}')"
	ips '10.1.0.78/16 10.1.0.1'
	CNI_ARGS='IP=10.1.0.79/24' ok ADD static c1 <<<"$(one)"
	ips '10.1.0.5/24 10.1.0.1, 10.1.0.79/24 10.1.0.1'
	# What CNI_ARGS says comes first, also for what replaces its addresses.
	CNI_ARGS='IP=10.1.0.79/24;GATEWAY=10.1.0.2' ok ADD static c1 <<<"$(one)"
	ips '10.1.0.5/24 10.1.0.1, 10.1.0.79/24 10.1.0.2'
	CNI_ARGS='GATEWAY=10.1.0.2' ok ADD static c1 <<<"$(one '{"runtimeConfig":{"ips":["10.1.0.77/24"]}}')"
	ips '10.1.0.77/24 10.1.0.2'
	# A gateway alone, for networks whose addresses always come at run time.
	ok ADD static c1 <<<"$(conf '{"addresses":[{"gateway":"10.1.0.1"},{"gateway":"fd00:1::1"}]}' \
		'{"runtimeConfig":{"ips":["10.1.0.77/24","fd00:1::77/64"]}}')"
	ips '10.1.0.77/24 10.1.0.1, fd00:1::77/64 fd00:1::1'
}

# ---- the other verbs --------------------------------------------------------------------------

@test "DEL succeeds whatever the config says, with or without a namespace" {
	ok DEL static c1 <<<"$(one)"
	NETNS='' ok DEL static c1 <<<"$(one)"
	ok DEL static c1 <<<"$(conf '{"addresses":"nonsense"}')"
	CNI_ARGS='nonsense' ok DEL static c1 <<<'{"cniVersion":"1.0.0","name":"net1","type":"x"}'
}

@test "CHECK compares address and gateway with prevResult" {
	local right='{"ips":[{"address":"10.9.0.1/24"},{"address":"10.1.0.5/24","gateway":"10.1.0.1"}]}'
	ok CHECK static c1 <<<"$(with_prev "$(one)" "$right")"
	fails 7 'Required prevResult missing' CHECK static c1 <<<"$(one)"
	fails 101 'static: Failed to match addr .*10.1.0.5.* on interface eth0' CHECK static c1 \
		<<<"$(with_prev "$(one)" "$(jq -c '.ips[1].gateway = "10.1.0.2"' <<<"$right")")"
	fails 101 'static: Failed to match addr' CHECK static c1 \
		<<<"$(with_prev "$(one)" "$(jq -c 'del(.ips[1].gateway)' <<<"$right")")"
	ok CHECK static c1 <<<"$(with_prev "$(conf '{"addresses":[{"address":"10.1.0.5/24"}]}')" "$right")"
	only_cnibox "looks at addresses that it finds only, and at their prefix never"
	fails 101 'Failed to match addr 10.1.0.5/24 on interface eth0: not in prevResult' CHECK static c1 \
		<<<"$(with_prev "$(one)" '{"ips":[{"address":"10.9.0.1/24"}]}')"
	fails 101 'Failed to match addr 10.1.0.5/24 on interface eth0: not in prevResult' CHECK static c1 \
		<<<"$(with_prev "$(one)" '{"ips":[{"address":"10.1.0.5/16","gateway":"10.1.0.1"}]}')"
}

@test "CHECK looks at the addresses given at run time" {
	local c right='{"ips":[{"address":"10.4.0.5/24"}]}'
	c=$(one '{"runtimeConfig":{"ips":["10.4.0.5/24"]}}')
	ok CHECK static c1 <<<"$(with_prev "$c" "$right")"
	CNI_ARGS='IP=10.4.0.5/24' ok CHECK static c1 <<<"$(with_prev "$(conf '{}')" "$right")"
	# As the Go plugin leaves it, which gives such addresses no gateway.
	c=$(one '{"runtimeConfig":{"ips":["10.1.0.77/24"]}}')
	ok CHECK static c1 <<<"$(with_prev "$c" '{"ips":[{"address":"10.1.0.77/24"}]}')"
	only_cnibox "does not look at addresses that prevResult does not have"
	fails 101 'Failed to match addr 10.1.0.77/24' CHECK static c1 <<<"$(with_prev "$c" "$right")"
}

@test "STATUS checks the config, which may have no addresses; GC has nothing to do" {
	only_cnibox "1.1.1 has neither"
	VERSION=1.1.0
	ok STATUS static c1 <<<"$(one)"
	ok STATUS static c1 <<<"$(conf '{}')"
	fails 7 'CIDR' STATUS static c1 <<<"$(conf '{"addresses":[{"address":"10.1.0.5"}]}')"
	fails 7 'dst' STATUS static c1 <<<"$(conf '{"routes":[{}]}')"
	ok GC static c1 <<<"$(one '{"cni.dev/valid-attachments":[]}')"
}

# ---- beneath a main plugin --------------------------------------------------------------------

@test "two containers on a bridge: packets, a second route, CHECK and DEL" {
	need_applet bridge
	local a b n
	a=$(jq -c '. + {type: "bridge", bridge: "br0", isGateway: true}' \
		<<<"$(conf '{"addresses":[{"address":"10.1.0.5/24","gateway":"10.1.0.1"}],
			"routes":[{"dst":"10.7.0.0/16","gw":"10.1.0.6"}]}')")
	b=$(jq -c '.runtimeConfig.ips = ["10.1.0.6/24"]' <<<"$a")
	for n in c1 c2; do netns $n; done
	ok ADD bridge c1 <<<"$a"
	ips '10.1.0.5/24 10.1.0.1'
	jq -c --argjson r "$output" '.prevResult = $r' <<<"$a" >"$T/check"
	ok ADD bridge c2 <<<"$(jq -c 'del(.ipam.routes)' <<<"$b")"
	serve c2 80
	same "packets" "c2 10.1.0.5" "$(ask c1 tcp 10.1.0.6 80)"
	[[ $(inside c1 ip route) == *'10.7.0.0/16 via 10.1.0.6'* ]]
	ok CHECK bridge c1 <"$T/check"
	inside c1 ip addr del 10.1.0.5/24 dev eth0
	fails 101 '' CHECK bridge c1 <"$T/check"
	ok DEL bridge c1 <<<"$a"
	ok DEL bridge c2 <<<"$b"
	only_cnibox "the kernel removes the pair of the Go plugin a little later"
	nothing_left br0
}

@test "it is asked in this process, before the link is up" {
	only_cnibox "is executed"
	need_applet bridge
	netns c1
	CNIBOX_TRACE=$T/trace
	export CNIBOX_TRACE
	ok ADD bridge c1 <<<"$(jq -c '. + {type: "bridge", bridge: "br0"}' <<<"$(one)")"
	never grep -q exec "$T/trace"
	grep -q bridge "$T/trace"
}
