# portmap: a node whose containers were set up by version 0.1. Its table, and records without seen, when and yield, are
# read, checked and removed, and new containers join them. The topology is in portmap.bash.

load helpers
load portmap

# The table as version 0.1 made it: a has 8080 and, on 192.0.2.1, 53/udp; b, under the condition that the client is
# in 192.0.2.0/24, 8081 and, on 192.0.2.1, 8082.
old_table() {
	topology
	host nft -f - <<-'EOF'
		table inet cnibox_portmap {
			comment "port mappings of cnibox, see docs/portmap.md"
			set owners {
				type ipv6_addr . inet_service
				comment "owner's hash . line of its record"
				elements = { b829:717d:15a8:3671:8c08:d11:9f45:cf18 . 0 comment "cnibox 8e48f37d5de60467 b829717d15a836718c080d119f45cf18 net1 b eth0",
					     cc37:7fbc:a3cf:9d2f:61f9:d58e:e2af:951a . 0 comment "cnibox 8e48f37d5de60467 cc377fbca3cf9d2f61f9d58ee2af951a net1 a eth0",
					     b829:717d:15a8:3671:8c08:d11:9f45:cf18 . 1 comment "records=6 gates=4 from=10.22.0.0/24,127.0.0.0/8,fd22::/64",
					     cc37:7fbc:a3cf:9d2f:61f9:d58e:e2af:951a . 1 comment "records=6 from=10.22.0.0/24,127.0.0.0/8,fd22::/64",
					     b829:717d:15a8:3671:8c08:d11:9f45:cf18 . 2 comment "netns 4026532461 /run/netns/b",
					     cc37:7fbc:a3cf:9d2f:61f9:d58e:e2af:951a . 2 comment "netns 4026532390 /run/netns/a",
					     b829:717d:15a8:3671:8c08:d11:9f45:cf18 . 3 comment "map tcp 0.0.0.0 10.22.0.3 8081>80",
					     cc37:7fbc:a3cf:9d2f:61f9:d58e:e2af:951a . 3 comment "map tcp 0.0.0.0 10.22.0.2 8080>80",
					     b829:717d:15a8:3671:8c08:d11:9f45:cf18 . 4 comment "map tcp 192.0.2.1 10.22.0.3 8082>81",
					     cc37:7fbc:a3cf:9d2f:61f9:d58e:e2af:951a . 4 comment "map udp 192.0.2.1 10.22.0.2 53>53",
					     b829:717d:15a8:3671:8c08:d11:9f45:cf18 . 5 comment "map tcp :: fd22::3 8081>80",
					     cc37:7fbc:a3cf:9d2f:61f9:d58e:e2af:951a . 5 comment "map tcp :: fd22::2 8080>80" }
			}

			set localnet {
				type ifname
				comment "links with route_localnet"
				elements = { "cni0" comment "cnibox set route_localnet" }
			}

			map ports4 {
				type inet_proto . inet_service : ipv4_addr . inet_service
				comment "any local address: protocol . host port : container"
				elements = { tcp . 8080 comment "cnibox 8e48f37d5de60467 cc377fbca3cf9d2f61f9d58ee2af951a net1 a eth0" : 10.22.0.2 . 80,
					     tcp . 8081 comment "cnibox 8e48f37d5de60467 b829717d15a836718c080d119f45cf18 net1 b eth0" : 10.22.0.3 . 80 }
			}

			map hosts4 {
				type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service
				comment "one address: hostIP . protocol . host port : container"
				elements = { 192.0.2.1 . udp . 53 comment "cnibox 8e48f37d5de60467 cc377fbca3cf9d2f61f9d58ee2af951a net1 a eth0" : 10.22.0.2 . 53,
					     192.0.2.1 . tcp . 8082 comment "cnibox 8e48f37d5de60467 b829717d15a836718c080d119f45cf18 net1 b eth0" : 10.22.0.3 . 81 }
			}

			map gates4 {
				type inet_proto . inet_service : verdict
				comment "conditions of entries of ports"
				elements = { tcp . 8081 comment "cnibox 8e48f37d5de60467 b829717d15a836718c080d119f45cf18 net1 b eth0" : jump gate_b829717d15a836718c080d119f45cf18 }
			}

			map gate_hosts4 {
				type ipv4_addr . inet_proto . inet_service : verdict
				comment "conditions of entries of hosts"
				elements = { 192.0.2.1 . tcp . 8082 comment "cnibox 8e48f37d5de60467 b829717d15a836718c080d119f45cf18 net1 b eth0" : jump gate_b829717d15a836718c080d119f45cf18 }
			}

			map ports6 {
				type inet_proto . inet_service : ipv6_addr . inet_service
				comment "any local address: protocol . host port : container"
				elements = { tcp . 8080 comment "cnibox 8e48f37d5de60467 cc377fbca3cf9d2f61f9d58ee2af951a net1 a eth0" : fd22::2 . 80,
					     tcp . 8081 comment "cnibox 8e48f37d5de60467 b829717d15a836718c080d119f45cf18 net1 b eth0" : fd22::3 . 80 }
			}

			map hosts6 {
				type ipv6_addr . inet_proto . inet_service : ipv6_addr . inet_service
				comment "one address: hostIP . protocol . host port : container"
			}

			map gates6 {
				type inet_proto . inet_service : verdict
				comment "conditions of entries of ports"
			}

			map gate_hosts6 {
				type ipv6_addr . inet_proto . inet_service : verdict
				comment "conditions of entries of hosts"
			}

			set masq4_24 {
				type ipv4_addr . ipv4_addr . inet_proto . inet_service
				comment "source's network . container . protocol . container port"
				elements = { 10.22.0.0 . 10.22.0.2 . udp . 53 comment "cnibox 8e48f37d5de60467 cc377fbca3cf9d2f61f9d58ee2af951a net1 a eth0",
					     10.22.0.0 . 10.22.0.2 . tcp . 80 comment "cnibox 8e48f37d5de60467 cc377fbca3cf9d2f61f9d58ee2af951a net1 a eth0",
					     10.22.0.0 . 10.22.0.3 . tcp . 80 comment "cnibox 8e48f37d5de60467 b829717d15a836718c080d119f45cf18 net1 b eth0",
					     10.22.0.0 . 10.22.0.3 . tcp . 81 comment "cnibox 8e48f37d5de60467 b829717d15a836718c080d119f45cf18 net1 b eth0" }
			}

			set masq4_8 {
				type ipv4_addr . ipv4_addr . inet_proto . inet_service
				comment "source's network . container . protocol . container port"
				elements = { 127.0.0.0 . 10.22.0.2 . udp . 53 comment "cnibox 8e48f37d5de60467 cc377fbca3cf9d2f61f9d58ee2af951a net1 a eth0",
					     127.0.0.0 . 10.22.0.2 . tcp . 80 comment "cnibox 8e48f37d5de60467 cc377fbca3cf9d2f61f9d58ee2af951a net1 a eth0",
					     127.0.0.0 . 10.22.0.3 . tcp . 80 comment "cnibox 8e48f37d5de60467 b829717d15a836718c080d119f45cf18 net1 b eth0",
					     127.0.0.0 . 10.22.0.3 . tcp . 81 comment "cnibox 8e48f37d5de60467 b829717d15a836718c080d119f45cf18 net1 b eth0" }
			}

			set masq6_64 {
				type ipv6_addr . ipv6_addr . inet_proto . inet_service
				comment "source's network . container . protocol . container port"
				elements = { fd22:: . fd22::2 . tcp . 80 comment "cnibox 8e48f37d5de60467 cc377fbca3cf9d2f61f9d58ee2af951a net1 a eth0",
					     fd22:: . fd22::3 . tcp . 80 comment "cnibox 8e48f37d5de60467 b829717d15a836718c080d119f45cf18 net1 b eth0" }
			}

			chain guard {
				type filter hook prerouting priority raw; policy accept;
				ip saddr 127.0.0.0/8 iifname @localnet drop comment "127.0.0.0/8 stays inside the host although route_localnet is set"
				ip daddr 127.0.0.0/8 iifname @localnet drop comment "127.0.0.0/8 stays inside the host although route_localnet is set"
			}

			chain prerouting {
				type nat hook prerouting priority dstnat; policy accept;
				meta nfproto ipv4 fib daddr type local jump translate4
				ip6 daddr != ::1 fib daddr type local jump translate6
			}

			chain output {
				type nat hook output priority -100; policy accept;
				meta nfproto ipv4 fib daddr type local jump translate4
				ip6 daddr != ::1 fib daddr type local jump translate6
			}

			chain postrouting {
				type nat hook postrouting priority srcnat; policy accept;
				ct status dnat ip saddr & 255.255.255.0 . ip daddr . meta l4proto . th dport @masq4_24 masquerade
				ct status dnat ip saddr & 255.0.0.0 . ip daddr . meta l4proto . th dport @masq4_8 masquerade
				ct status dnat ip6 saddr & ffff:ffff:ffff:ffff:: . ip6 daddr . meta l4proto . th dport @masq6_64 masquerade
			}

			chain translate4 {
				ip daddr . meta l4proto . th dport vmap @gate_hosts4
				dnat ip to ip daddr . meta l4proto . th dport map @hosts4
				meta l4proto . th dport vmap @gates4
				dnat ip to meta l4proto . th dport map @ports4
			}

			chain translate6 {
				ip6 daddr . meta l4proto . th dport vmap @gate_hosts6
				dnat ip6 to ip6 daddr . meta l4proto . th dport map @hosts6
				meta l4proto . th dport vmap @gates6
				dnat ip6 to meta l4proto . th dport map @ports6
			}

			chain gate_b829717d15a836718c080d119f45cf18 {
				comment "cnibox 8e48f37d5de60467 b829717d15a836718c080d119f45cf18 net1 b eth0"
				ip saddr 192.0.2.0/24 return
				accept
			}
		}
	EOF
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
