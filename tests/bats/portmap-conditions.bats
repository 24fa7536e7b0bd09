# portmap's conditions: part of what an attachment claims. The topology is in portmap.bash.

load helpers
load portmap

@test "conditions in iptables' syntax" {
	topology
	veth y 198.51.100 fd98
	serve a 80
	keys='{"conditionsV4":["!","-s","198.51.100.0/24","-d","192.0.2.1"],"conditionsV6":["-i","vy"]}'
	serve a 80 tcp -6
	add a 2 "8080:80" "$keys"
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	answers x tcp 10.22.0.1 8080 ""
	answers y tcp 192.0.2.1 8080 ""
	answers x tcp fd99::1 8080 ""
	answers y tcp fd98::1 8080 "a fd98::9"
	check a 2 "8080:80" "$keys"
	add a 2 "8080:80" "$keys"
	del a 2 "8080:80"
	! is_cnibox || nothing_left cni0 va vb vx vy
}

@test "conditions of one network do not concern another" {
	only_cnibox "Go's nftables backend lets the last ADD decide for all"
	topology
	serve a 80
	serve b 80
	NET=net1 add a 2 "8080:80 8090:80@192.0.2.1" '{"conditionsV4":["-i","nowhere+"]}'
	NET=net2 add b 3 "8081:80"
	answers x tcp 192.0.2.1 8080 ""
	answers x tcp 192.0.2.1 8090 ""
	answers x tcp 192.0.2.1 8081 "b 192.0.2.9"
	host nft flush chain inet cnibox_portmap when_ports4
	fails 101 'when_ports4' CHECK portmap a <<<"$(conf a 2 "8080:80" '{"conditionsV4":["-i","nowhere+"]}')"
	del a 2 -
	del b 3 -
}

@test "all that is understood of iptables' syntax" {
	only_cnibox "Go hands it to iptables"
	topology
	add a 2 "8080:80" '{"conditionsV4":["-p","tcp","-m","tcp","--sport","1024:65535","!","--dport","9","-i","eth+",
		"!","-o","lo","--source","10.0.0.0/255.0.0.0","-d","192.0.2.1"],"conditionsV6":["! -p udp","-s","fd00::/8"]}'
	rules=$(host nft list chain inet cnibox_portmap when_ports4)
	rules+=$(host nft list chain inet cnibox_portmap when_ports6)
	[[ $rules == *'tcp sport 1024-65535 tcp dport != 9 iifname "eth*" oifname != "lo" ip saddr 10.0.0.0/8 ip daddr 192.0.2.1 dnat ip to'* ]] ||
		{ echo "$rules" && return 1; }
	[[ $rules == *'meta l4proto != udp ip6 saddr fd00::/8 dnat ip6 to'* ]] || { echo "$rules" && return 1; }
	for bad in '["-m","limit"]' '["-j","ACCEPT"]' '["--dport","80"]' '["-s","nonsense"]' '["-s"]' '["!"]' '["-s","fd00::/8"]' \
		'["-p","icmp"]' '["-p","tcp","--dport","99999"]' '["-p","tcp","--dport","9:1"]' '["-s","10.0.0.0/255.0.255.0"]'; do
		fails 7 'conditionsV4: ' ADD portmap b <<<"$(conf b 3 "8081:80" "{\"conditionsV4\":$bad}")" || return 1
	done
	fails 7 'conditionsV4' ADD portmap b <<<"$(conf b 3 "8081:80" '{"conditionsV4":["-s",3]}')"
}

@test "conditions in nft's syntax" {
	only_cnibox "Debian's Go plugin knows iptables only"
	topology
	veth y 198.51.100 fd98
	serve a 80
	keys='{"backend":"nftables","conditionsV4":["ip","saddr","!=","{ 198.51.100.0/24, 203.0.113.0/24 }"],"conditionsV6":["iifname \"vx\""]}'
	add a 2 "8080:80" "$keys"
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	answers y tcp 192.0.2.1 8080 ""
	check a 2 "8080:80" "$keys"
	add a 2 "8080:80" "$keys"
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	add a 2 "8080:80"
	answers y tcp 192.0.2.1 8080 "a 198.51.100.9"
	del a 2 -
	for bad in 'ip saddr' 'nonsense' 'ip saddr 1.2.3.4 accept'; do
		fails 7 'nft does not accept' ADD portmap a <<<"$(conf a 2 "8080:80" "$(jq -n --arg c "$bad" '{conditionsV4: [$c]}')")"
	done
	for bad in 'ip saddr 1.2.3.4; flush ruleset' $'ip saddr 1.2.3.4\nflush ruleset' 'ip saddr 1.2.3.4 } table inet x {' \
		'iif lo # comment' 'iifname "lo'; do
		fails 7 'conditionsV4: ' ADD portmap a <<<"$(conf a 2 "8080:80" "$(jq -n --arg c "$bad" '{conditionsV4: [$c]}')")"
	done
	! host nft list ruleset | grep .
}


@test "two containers share a host port under different conditions" {
	only_cnibox "Go lets the first one win"
	topology
	veth y 198.51.100 fd98
	serve a 80
	serve b 80
	a='{"conditionsV4":["-s","192.0.2.0/24"],"conditionsV6":["-s","fd99::/64"]}'
	b='{"conditionsV4":["ip saddr 198.51.100.0/24"],"conditionsV6":["ip6 saddr fd98::/64"]}'
	add a 2 "8080:80" "$a"
	add b 3 "8080:80" "$b"
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	answers y tcp 192.0.2.1 8080 "b 198.51.100.9"
	check a 2 "8080:80" "$a"
	check b 3 "8080:80" "$b"
	# Spelled in another way it is the same condition, and the port is taken.
	netns c
	fails 102 'host port 8080/tcp .*container "a"' ADD portmap c <<<"$(conf c 4 "8080:80" '{"conditionsV4":["--source","192.0.2.9/24"]}')"
	del a 2 -
	answers x tcp 192.0.2.1 8080 ""
	same "maps of a's conditions" 4 "$(host nft list maps | grep -cE '(ports|hosts)[46]_')"
	del b 3 -
	nothing_left cni0 va vb vx vy
}

@test "who has no conditions gets what the others' do not catch" {
	only_cnibox "Go lets the first one win"
	topology
	serve a 80
	serve b 80
	add b 3 "8080:80"
	add a 2 "8080:80" '{"conditionsV4":["-i","vx"],"conditionsV6":["-i","vx"]}'
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	answers host tcp 192.0.2.1 8080 "b 192.0.2.1"
	check b 3 "8080:80"
	del a 2 -
	answers x tcp 192.0.2.1 8080 "b 192.0.2.9"
	same "maps of conditions" "" "$(host nft list maps | grep -E '(ports|hosts)[46]_')"
}

@test "conditions of one address that are not met: the mapping of any address is next" {
	only_cnibox "Go lets the first one win"
	topology
	veth y 198.51.100 fd98
	serve a 80
	serve b 80
	keys='{"conditionsV4":["-s","198.51.100.0/24"]}'
	add a 2 "8080:80@192.0.2.1" "$keys"
	add b 3 "8080:80"
	answers y tcp 192.0.2.1 8080 "a 198.51.100.9"
	answers x tcp 192.0.2.1 8080 "b 192.0.2.9"
	check a 2 "8080:80@192.0.2.1" "$keys"
}

@test "GC removes maps of conditions that nobody has" {
	only_cnibox "Go has no GC"
	topology
	add b 3 "8081:80"
	host nft -f - <<-'EOF'
		table inet cnibox_portmap {
			map ports4_0123456789abcdef { type inet_proto . inet_service : ipv4_addr . inet_service; }
			map hosts4_0123456789abcdef { type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service; }
			chain when_ports4 { iifname "x" dnat ip to meta l4proto . th dport map @ports4_0123456789abcdef comment "0123456789abcdef"; }
		}
	EOF
	ok GC portmap - <<<'{"cniVersion":"1.1.0","name":"net1","type":"portmap","cni.dev/valid-attachments":[{"containerID":"b","ifname":"eth0"}]}'
	same "rules and maps" "" "$(host nft list ruleset | grep 0123456789abcdef)"
	check b 3 "8081:80"
}
