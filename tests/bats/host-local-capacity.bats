# How many addresses the ranges of a network have left, as `cnitool show` tells it.

load helpers
load cnitool

setup() {
	need_applet host-local
	sandbox
	tool_setup
	only_ours "show is ours"
}
teardown() { sandbox_end; }

# free_of RANGE...: what show says of a network with one range set of these, one address in use.
free_of() {
	local ranges
	ranges=$(jq -nc --args '$ARGS.positional | map({subnet: .})' "$@")
	jq -nc --argjson r "$ranges" '{cniVersion: "1.0.0", name: "net", plugins: [{type: "ptp",
		ipam: {type: "host-local", ranges: [$r]}}]}' >"$NET/10-net.conflist"
	host rm -rf /var/lib/cni/networks/net
	ok ADD host-local c1 <<<"$(jq -c '.plugins[0] + {cniVersion, name}' "$NET/10-net.conflist")"
	tool show --json
	jq '.networks[0].leases.free' "$T/stdout"
}

@test "the free addresses of IPv4 and IPv6 ranges are counted exactly" {
	same 'IPv4 /24' 252 "$(free_of 10.1.2.0/24)"
	same 'IPv6 /120' 253 "$(free_of fd00::/120)"
	same 'IPv6 /80' 281474976710653 "$(free_of fd00::/80)"
	same 'several' 281474976710907 "$(free_of fd00::/80 fd00:1::/120)"
}

@test "more free addresses than a number holds are not none" {
	# jq reads numbers as doubles: no more than the order is compared.
	[[ $(free_of fd00::/64) =~ ^922337203685477[0-9]{4}$ ]]
	[[ $(free_of fd00::/48) =~ ^922337203685477[0-9]{4}$ ]]
}
