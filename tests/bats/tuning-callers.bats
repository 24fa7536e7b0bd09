# tuning: what its callers rely on: words they search for, results they hand on.

load helpers

setup() {
	need_applet tuning
	sandbox
	netns c1
	host ip link add veth0 type veth peer name eth0 netns c1
}
teardown() { sandbox_end; }

# config KEYS: a config with them and a prevResult.
config() {
	jq -n --argjson keys "$1" --arg v "${VERSION:-1.0.0}" '{cniVersion: $v, name: "net1",
		type: "tuning"} + $keys + {prevResult: {cniVersion: $v, interfaces: [{name: "veth0"},
		{name: "eth0", mac: "02:00:00:00:00:01", sandbox: "/run/netns/c1"}],
		ips: [{address: "10.9.0.2/24", interface: 1}]}}'
}

@test "a sysctl given twice is \"duplicated\"" {
	# Debian's Go plugin does not look; newer ones do.
	local text verb
	text=$(config '{"sysctl":{"net.core.somaxconn":"1","net.core.XX":"2"}}')
	text=${text/net.core.XX/net.core.somaxconn}
	cni ADD tuning c1 <<<"$text"
	[ "$status" -ne 0 ] || is_cnibox || skip "this plugin does not look for repeated keys"
	for verb in ADD CHECK; do
		fails 7 'duplicated sysctl keys are not allowed' $verb tuning c1 <<<"$text"
	done
	! is_cnibox || is .details '"\"net.core.somaxconn\" is given twice"'
	# Other keys may be repeated, and other objects have a sysctl of their own.
	text=$(config '{"x":{"sysctl":{"net.core.somaxconn":"1","net.core.XX":"2"}},
		"sysctl":{"net.core.somaxconn":"93"}}')
	ok ADD tuning c1 <<<"${text/net.core.XX/net.core.somaxconn}"
	same somaxconn 93 "$(inside c1 cat /proc/sys/net/core/somaxconn)"
}

@test "an interface index in prevResult that names no interface is passed through" {
	local index conf
	for index in -1 7; do
		conf=$(config '{"mtu":1400}' | jq ".prevResult.ips[0].interface = $index")
		ok ADD tuning c1 <<<"$conf"
		is '.ips[0].interface' "$index"
		ok CHECK tuning c1 <<<"$conf"
		ok DEL tuning c1 <<<"$conf"
	done
	same mtu 1500 "$(inside c1 ip -j link show eth0 | jq '.[0].mtu')"
}

@test "values are written as they are" {
	ok ADD tuning c1 <<<"$(config '{"sysctl":{"net.ipv4.conf.all.rp_filter":"2",
		"net.ipv4.ip_local_port_range":"20000\t30000"}}')"
	same range "$(printf '20000\t30000')" "$(inside c1 cat /proc/sys/net/ipv4/ip_local_port_range)"
	same rp_filter 2 "$(inside c1 cat /proc/sys/net/ipv4/conf/all/rp_filter)"
}
