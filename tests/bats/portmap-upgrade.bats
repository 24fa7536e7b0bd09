# portmap: a node whose containers were set up by version 0.1. Its table, and records without seen, when and yield, are
# read, checked and removed, and new containers join them. The topology is in portmap.bash.

load helpers
load portmap

# The table as version 0.1 made it: a has 8080 and, on 192.0.2.1, 53/udp; b, under the condition that the client is
# in 192.0.2.0/24, 8081 and, on 192.0.2.1, 8082.
old_table() {
	topology
	host nft -f "$BATS_TEST_DIRNAME/portmap-0.1.nft"
	host sysctl -qw net.ipv4.conf.cni0.route_localnet=1
}
old_a="8080:80 53:53/udp@192.0.2.1" old_b="8081:80 8082:81@192.0.2.1" when='{"conditionsV4":["-s","192.0.2.0/24"]}'

@test "what version 0.1 made works, is checked and removed" {
	only_cnibox "about our table"
	old_table
	serve a 80
	serve b 80
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	answers x tcp 192.0.2.1 8081 "b 192.0.2.9"
	check b 3 "$old_b" "$when"
	del b 3 -
	same "what is left of b" "" "$(host nft list ruleset | grep -E 'gate_b|10.22.0.3')"
	del a 2 -
	nothing_left cni0 va vb vx
	same "route_localnet" 0 "$(localnet)"
}

@test "GC removes what version 0.1 made" {
	only_cnibox "about our table"
	old_table
	ok GC portmap - <<<'{"cniVersion":"1.1.0","name":"net1","type":"portmap"}'
	nothing_left cni0 va vb vx
	same "route_localnet" 0 "$(localnet)"
}

@test "new containers, with conditions too, join the table of version 0.1" {
	only_cnibox "about our table"
	old_table
	port c 4
	serve b 80
	serve c 80
	add c 4 "8083:80" '{"conditionsV4":["-i","vx"]}'
	check c 4 "8083:80" '{"conditionsV4":["-i","vx"]}'
	answers x tcp 192.0.2.1 8083 "c 192.0.2.9"
	answers host tcp 192.0.2.1 8083 ""
	answers x tcp 192.0.2.1 8081 "b 192.0.2.9"
	answers host tcp 10.22.0.1 8081 ""
	fails 102 'already mapped to 10.22.0.2 by container "a"' ADD portmap c <<<"$(conf c 4 "8080:80" |
		jq 'del(.prevResult.ips[1])')"
	# An ADD again puts it into the new form.
	add b 3 "$old_b" "$when"
	check b 3 "$old_b" "$when"
	answers x tcp 192.0.2.1 8081 "b 192.0.2.9"
	answers host tcp 10.22.0.1 8081 ""
	same "gates" "" "$(host nft list ruleset | grep gate_b)"
	del a 2 -
	del b 3 -
	del c 4 -
	nothing_left cni0 va vb vx vc
}
