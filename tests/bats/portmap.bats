# portmap: host ports that lead to a container. Tested alone: the topology is made with ip, prevResult
# is written by hand (portmap.bash).

load helpers
load portmap

@test "ADD hands prevResult on" {
	topology
	add a 2 "8080:80"
	same "result" "$(conf a 2 "" | jq -cS .prevResult)" "$(jq -cS 'del(.dns | select(. == {}))' <<<"$output")"
	VERSION=0.4.0
	cni ADD portmap a <<<"$(conf a 2 "8080:80" | jq '.prevResult.ips[0].version = "4"
		| .prevResult.ips[1].version = "6"')"
	same "status" 0 "$status"
	is '.ips[0].version' '"4"'
}

@test "without mappings or addresses nothing is made" {
	topology
	add a 2 ""
	add a 2 -
	ok ADD portmap a <<<"$(conf a 2 "8080:80" | jq 'del(.prevResult.interfaces[1].sandbox)')"
	ok ADD portmap a <<<"$(conf a 2 "8080:80" | jq 'del(.prevResult.ips)')"
	ok ADD portmap a <<<"$(conf a 2 "8080:80" | jq '.runtimeConfig = null')"
	lacks '.' nft list ruleset
	same "route_localnet" 0 "$(localnet)"
	fails 7 'must be called as chained plugin' ADD portmap a <<<"$(conf a 2 "8080:80" | jq 'del(.prevResult)')"
}

@test "tcp: from outside, from the node, from neighbours, from the container itself" {
	topology
	add a 2 "8080:80"
	serve a 80
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	answers x tcp 10.22.0.1 8080 "a 192.0.2.9"
	answers host tcp 192.0.2.1 8080 "a 192.0.2.1"
	answers host tcp 10.22.0.1 8080 "a 10.22.0.1"
	answers host tcp 127.0.0.1 8080 "a 10.22.0.1"
	answers host tcp 127.0.0.7 8080 "a 10.22.0.1"
	answers b tcp 10.22.0.1 8080 "a 10.22.0.1"
	answers b tcp 192.0.2.1 8080 "a 10.22.0.1"
	answers a tcp 192.0.2.1 8080 "a 10.22.0.1"
	answers x tcp 10.22.0.2 80 "a 192.0.2.9"
	answers b tcp 10.22.0.2 80 "a 10.22.0.3"
	answers x tcp 192.0.2.1 80 ""
	check a 2 "8080:80"
	del a 2 "8080:80"
	answers x tcp 192.0.2.1 8080 ""
	answers host tcp 127.0.0.1 8080 ""
}

@test "tcp over IPv6" {
	topology
	add a 2 "8080:80"
	serve a 80 tcp -6
	answers x tcp fd99::1 8080 "a fd99::9"
	answers host tcp fd99::1 8080 "a fd99::1"
	answers b tcp fd22::1 8080 "a fd22::1"
	answers b tcp fd99::1 8080 "a fd22::1"
	answers a tcp fd99::1 8080 "a fd22::1"
	del a 2 "8080:80"
	answers x tcp fd99::1 8080 ""
}

@test "udp" {
	topology
	add a 2 "5300:53/udp"
	serve a 53 udp
	serve a 53 udp -6
	answers x udp 192.0.2.1 5300 "a 192.0.2.9"
	answers x udp fd99::1 5300 "a fd99::9"
	answers host udp 127.0.0.1 5300 "a 10.22.0.1"
	answers b udp 10.22.0.1 5300 "a 10.22.0.1"
	answers a udp 192.0.2.1 5300 "a 10.22.0.1"
	answers x tcp 192.0.2.1 5300 ""
	check a 2 "5300:53/udp"
}

@test "sctp" {
	only_cnibox "looks at our table"
	topology
	add a 2 "9000:90/sctp"
	elements ports4 | jq_is '.nftables[1].map.elem[0] | [.[0].elem.val.concat, .[1].concat]' \
		'[["sctp",9000],["10.22.0.2",90]]'
	host modprobe sctp 2>/dev/null || inside a test -e /proc/net/sctp || skip "the kernel has no sctp"
	serve a 90 sctp
	answers x sctp 192.0.2.1 9000 "a 192.0.2.9"
}

@test "upper-case and missing protocol" {
	only_cnibox "Go hands the protocol to iptables as it is"
	topology
	serve a 80
	ok ADD portmap a <<<"$(conf a 2 "8080:80" | jq '.runtimeConfig.portMappings[0].protocol = "TCP"
		| .runtimeConfig.portMappings[1] = {HostPort: 8081, ContainerPort: 80}')"
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	answers x tcp 192.0.2.1 8081 "a 192.0.2.9"
}

@test "any source in 127.0.0.0/8 reaches the container" {
	only_cnibox "Go masquerades 127.0.0.1 only"
	topology
	add a 2 "8080:80"
	serve a 80
	same "answer" "a 10.22.0.1" "$(host timeout 30 socat -t30 - TCP4:127.0.0.1:8080,bind=127.0.0.5 <<<hello)"
	same "answer" "a 10.22.0.1" "$(host timeout 30 socat -t30 - TCP4:192.0.2.1:8080,bind=127.1.2.3 <<<hello)"
}

@test "a container in a /8, as the loopback's addresses are" {
	topology
	local wide='{"prevResult":{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"/run/netns/a"}],"ips":[{"address":"10.22.0.2/8","interface":0,"gateway":"10.22.0.1"}]}}'
	add a 2 "8080:80" "$wide"
	check a 2 "8080:80" "$wide"
	serve a 80
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	answers host tcp 127.0.0.1 8080 "a 10.22.0.1"
	answers a tcp 192.0.2.1 8080 "a 10.22.0.1"
	del a 2 "8080:80" "$wide"
}

@test "[::1] is the node's own" {
	only_cnibox "Go translates it, and the answer gets lost"
	topology
	add a 2 "8080:80"
	serve a 80 tcp -6
	answers host tcp ::1 8080 ""
	serve host 8080 tcp -6
	answers host tcp ::1 8080 "host ::1"
	answers host tcp fd99::1 8080 "a fd99::1"
}

@test "hostIP: only that address, or one family" {
	topology
	serve a 80
	serve a 80 tcp -6
	add a 2 "8001:80@192.0.2.1 8002:80@127.0.0.1 8003:80@0.0.0.0 8004:80@:: 8005:80@fd99::1 8006:80@::ffff:192.0.2.1"
	answers x tcp 192.0.2.1 8001 "a 192.0.2.9"
	answers x tcp 10.22.0.1 8001 ""
	answers host tcp 127.0.0.1 8001 ""
	answers x tcp fd99::1 8001 ""
	answers x tcp 192.0.2.1 8002 ""
	answers host tcp 127.0.0.1 8002 "a 10.22.0.1"
	answers x tcp 192.0.2.1 8003 "a 192.0.2.9"
	answers x tcp fd99::1 8003 ""
	answers x tcp 192.0.2.1 8004 ""
	answers x tcp fd99::1 8004 "a fd99::9"
	answers x tcp fd99::1 8005 "a fd99::9"
	answers b tcp fd22::1 8005 ""
	answers x tcp 192.0.2.1 8006 "a 192.0.2.9"
	answers x tcp 10.22.0.1 8006 ""
	check a 2 "8001:80@192.0.2.1 8005:80@fd99::1"
	del a 2 -
	! is_cnibox || nothing_left cni0 va vb vx
}

@test "two host addresses, one port, two containers; the exact one beats the wildcard" {
	only_cnibox "Go: whichever rule was made first wins"
	topology
	serve a 80
	serve b 80
	add a 2 "8080:80"
	add b 3 "8080:80@10.22.0.1 8080:80@127.0.0.1"
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	answers x tcp 10.22.0.1 8080 "b 192.0.2.9"
	answers host tcp 127.0.0.1 8080 "b 10.22.0.1"
	answers host tcp 127.0.0.2 8080 "a 10.22.0.1"
	del b 3 -
	answers x tcp 10.22.0.1 8080 "a 192.0.2.9"
}

@test "traffic that only passes through the node is never rewritten" {
	topology
	veth y 198.51.100 fd98
	add a 2 "8080:80 5300:53/udp"
	serve a 80
	serve a 53 udp
	serve y 8080
	serve y 8080 tcp -6
	serve y 5300 udp
	serve a 8080
	answers x tcp 198.51.100.9 8080 "y 192.0.2.9"
	answers x tcp fd98::9 8080 "y fd99::9"
	answers x udp 198.51.100.9 5300 "y 192.0.2.9"
	answers a tcp 198.51.100.9 8080 "y 10.22.0.2"
	answers b tcp 198.51.100.9 8080 "y 10.22.0.3"
	answers host tcp 198.51.100.9 8080 "y 198.51.100.1"
	answers x tcp 10.22.0.2 8080 "a 192.0.2.9"
	answers x tcp 198.51.100.1 8080 "a 192.0.2.9"
}

@test "bridged traffic that the node's rules see too (bridge-nf-call-iptables)" {
	topology
	host test -e /proc/sys/net/bridge/bridge-nf-call-iptables || skip "no br_netfilter"
	host sysctl -qw net.bridge.bridge-nf-call-iptables=1 net.bridge.bridge-nf-call-ip6tables=1
	add a 2 "8080:80"
	serve a 80
	answers b tcp 10.22.0.1 8080 "a 10.22.0.1"
	answers b tcp 10.22.0.2 80 "a 10.22.0.3"
	answers host tcp 127.0.0.1 8080 "a 10.22.0.1"
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	host ip link set va type bridge_slave hairpin on
	answers a tcp 10.22.0.1 8080 "a 10.22.0.1"
}

@test "a point-to-point network" {
	topology
	veth c 10.33.0 fd33
	serve c 80
	conf=$(conf c 9 "8080:80" | jq '.prevResult.interfaces[0].name = "vc" |
		.prevResult.ips = [{address: "10.33.0.9/24", interface: 1}]')
	ok ADD portmap c <<<"$conf"
	answers x tcp 192.0.2.1 8080 "c 192.0.2.9"
	answers host tcp 127.0.0.1 8080 "c 10.33.0.1"
	answers c tcp 192.0.2.1 8080 "c 10.33.0.1"
	answers b tcp 192.0.2.1 8080 "c 10.22.0.3"
	same "route_localnet" 1 "$(localnet vc)"
	is_cnibox || return 0
	ok CHECK portmap c <<<"$conf"
	add a 2 "8081:80"
	ok DEL portmap c <<<"$(jq 'del(.prevResult, .runtimeConfig)' <<<"$conf")"
	# The guard of its link goes with it, that of the bridge stays.
	elements localnet | jq_is '[.nftables[1].set.elem[] | .elem.val]' '["cni0"]'
}

@test "result of 0.2.0: addresses without interfaces" {
	topology
	serve a 80
	cni ADD portmap a <<<"$(conf a 2 "8080:80" | jq '.cniVersion = "0.2.0" |
		.prevResult = {cniVersion: "0.2.0", ip4: {ip: "10.22.0.2/24"}}')"
	same "status" 0 "$status"
	is '.ip4.ip' '"10.22.0.2/24"'
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
}

@test "nothing remains after the last DEL, route_localnet is as before" {
	only_cnibox "Go leaves its chains and the sysctl"
	topology
	add a 2 "8080:80 5300:53/udp 9000:90/sctp"
	add b 3 "8081:80"
	same "route_localnet" 1 "$(localnet)"
	ok DEL portmap a <<<'{"cniVersion":"1.0.0","name":"net1","type":"portmap"}'
	host nft list table inet cnibox_portmap | grep -q 8081
	lacks '8080' nft list table inet cnibox_portmap
	same "route_localnet" 1 "$(localnet)"
	ok DEL portmap b <<<'{"cniVersion":"1.0.0","name":"net1","type":"portmap"}'
	lacks '.' nft list ruleset
	same "route_localnet" 0 "$(localnet)"
	nothing_left cni0 va vb vx
	ok DEL portmap b <<<'{"cniVersion":"1.0.0","name":"net1","type":"portmap"}'

	host sysctl -qw net.ipv4.conf.cni0.route_localnet=1
	add a 2 "8080:80"
	del a 2 -
	same "route_localnet that was set before" 1 "$(localnet)"
}

@test "DEL needs nothing and trusts nothing" {
	only_cnibox "Go removes nothing when the mappings are not sent again"
	topology
	add a 2 "8080:80"
	NETNS='' ok DEL portmap a <<<'{"cniVersion":"1.0.0","name":"net1","type":"portmap",
		"runtimeConfig":{"portMappings":[{"hostPort":-1}]},"snat":3,"prevResult":{"cniVersion":"0.1.0"}}'
	lacks '.' nft list ruleset
	NETNS=/run/netns/gone ok DEL portmap a <<<"$(conf a 2 "8080:80")"
}

@test "DEL when somebody took parts away" {
	only_cnibox "looks at our table"
	topology
	for what in "delete element inet cnibox_portmap ports4 { tcp . 8080 }" \
		"flush set inet cnibox_portmap owners; flush map inet cnibox_portmap hosts4" \
		"flush set inet cnibox_portmap masq4_24" "flush map inet cnibox_portmap ports6" \
		"flush set inet cnibox_portmap localnet" "flush chain inet cnibox_portmap postrouting" \
		"flush ruleset"; do
		add a 2 "8080:80 8081:81@192.0.2.1"
		host nft "$what"
		fails 101 'missing|not guarded|not set|not mapped' CHECK portmap a <<<"$(conf a 2 "8080:80 8081:81@192.0.2.1")" ||
			{ echo "after: $what" && return 1; }
		del a 2 -
		lacks '.' nft list ruleset || { echo "after: $what" && return 1; }
	done
}

@test "ADD over the remains of a record" {
	only_cnibox "looks at our table"
	topology
	add a 2 "8080:80"
	owner=$(host nft list set inet cnibox_portmap owners | grep -o '[0-9a-f:]* [.] 0 ' | sed 's/ [.] 0 //')
	for what in "delete element inet cnibox_portmap owners { $owner . 0 }" "delete element inet cnibox_portmap owners { $owner . 1 }" \
		"flush set inet cnibox_portmap owners" "flush map inet cnibox_portmap ports4"; do
		host nft "$what"
		add a 2 "8080:80"
		check a 2 "8080:80"
	done
	# Elements of an owner without a record are nobody's.
	host nft flush set inet cnibox_portmap owners
	add b 3 "8080:80"
	check b 3 "8080:80"
}

@test "route_localnet that cannot be set: ADD fails and leaves nothing; if it is set already it need not be" {
	only_cnibox "Go leaves its rules"
	topology
	host mount --bind /proc/sys /proc/sys
	host mount -o remount,bind,ro /proc/sys
	fails 100 'unable to enable route_localnet: cni0' ADD portmap a <<<"$(conf a 2 "8080:80")"
	lacks '.' nft list ruleset
	host umount /proc/sys
	host sysctl -qw net.ipv4.conf.cni0.route_localnet=1
	host mount --bind /proc/sys /proc/sys
	host mount -o remount,bind,ro /proc/sys
	add a 2 "8080:80"
	check a 2 "8080:80"
}

@test "CHECK sees a mapping that leads elsewhere and a missing sysctl" {
	only_cnibox "Go looks for rules only"
	topology
	add a 2 "8080:80"
	check a 2 "8080:80"
	check a 2 ""
	fails 101 'host port 8080/tcp leads elsewhere' CHECK portmap a <<<"$(conf a 2 "8080:81")"
	fails 101 'host port 8088/tcp is not mapped' CHECK portmap a <<<"$(conf a 2 "8088:81")"
	fails any 'Required prevResult missing' CHECK portmap a <<<"$(conf a 2 "8080:80" | jq 'del(.prevResult)')"
	host sysctl -qw net.ipv4.conf.cni0.route_localnet=0
	fails 101 'route_localnet of cni0' CHECK portmap a <<<"$(conf a 2 "8080:80")"
}

@test "ADD again replaces what there was" {
	topology
	add a 2 "8080:80 8081:80"
	serve a 80
	! is_cnibox || before=$(host nft -s list ruleset)
	add a 2 "8080:80 8081:80"
	! is_cnibox || same "ruleset" "$before" "$(host nft -s list ruleset)"
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	is_cnibox || return 0
	# Fewer ports, another address.
	host ip -n a addr add 10.22.0.22/24 dev eth0
	add a 22 "8080:80"
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	answers x tcp 192.0.2.1 8081 ""
	lacks '\<10\.22\.0\.2\>' nft list ruleset
}

@test "a host port that a live container has: refused, naming the holder" {
	only_cnibox "Go lets the first one win silently"
	topology
	add a 2 "8080:80 9000:90@192.0.2.1"
	before=$(host nft -s list ruleset)
	fails 102 'host port 8080/tcp is already mapped to 10.22.0.2 by container "a" \(network "net1", interface "eth0"\)' \
		ADD portmap b <<<"$(conf b 3 "8079:80 8080:80")"
	NET=net2 fails 102 'host port 9000/tcp of 192.0.2.1 .*container "a" \(network "net1"' \
		ADD portmap b <<<"$(NET=net2 conf b 3 "9000:80@192.0.2.1")"
	same "ruleset" "$before" "$(host nft -s list ruleset)"
	add b 3 "8080:80/udp 9000:80@10.22.0.1"
}

@test "the holder is named in full even if its names are long" {
	only_cnibox "Go lets the first one win silently"
	topology
	id=$(printf 0123456789abcdef%.0s 1 2 3 4)
	NET=k8s-pod-network NETNS=/run/netns/a ok ADD portmap "$id" <<<"$(NET=k8s-pod-network conf a 2 "8080:80")"
	fails 102 "container \"$id\" \(network \"k8s-pod-network\", interface \"eth0\"\)" \
		ADD portmap b <<<"$(conf b 3 "8080:80")"
}

@test "a host port whose container is gone is taken over" {
	only_cnibox "Go lets the first one win, alive or not"
	topology
	serve b 80
	add a 2 "8080:80 8081:80"
	host ip netns del a
	add b 3 "8081:80"
	answers x tcp 192.0.2.1 8081 "b 192.0.2.9"
	# All of it went, not just the port in the way.
	lacks '\<10\.22\.0\.2\>' nft list ruleset
	# Its late DEL takes nothing from the new holder.
	del a 2 -
	answers x tcp 192.0.2.1 8081 "b 192.0.2.9"
}

@test "another container at the address and port of one that is gone" {
	only_cnibox "Go has no notion of it"
	topology
	add a 2 "8080:80"
	host ip netns del a
	wait_for 60 host sh -c '! ip link show va'
	port c 2
	serve c 80
	add c 2 "8080:80"
	del a 2 -
	answers x tcp 192.0.2.1 8080 "c 192.0.2.9"
	answers b tcp 10.22.0.1 8080 "c 10.22.0.1"
	check c 2 "8080:80"
}

@test "two networks of one container with the same mappings" {
	topology
	serve a 80
	add a 2 "8080:80"
	NET=net2 IFNAME=eth1 add a 22 "8080:80"
	NET=net2 IFNAME=eth1 check a 22 "8080:80"
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	NET=net2 IFNAME=eth1 del a 22 "8080:80"
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	del a 2 "8080:80"
	! is_cnibox || nothing_left cni0 va vb vx
}

@test "masqAll: whoever comes through a mapped port is masqueraded, nobody else" {
	only_cnibox "newer than Debian's Go plugin"
	topology
	serve a 80
	add a 2 "8080:80" '{"masqAll":true}'
	answers x tcp 192.0.2.1 8080 "a 10.22.0.1"
	answers host tcp 127.0.0.1 8080 "a 10.22.0.1"
	answers b tcp 10.22.0.1 8080 "a 10.22.0.1"
	answers x tcp 10.22.0.2 80 "a 192.0.2.9"
	check a 2 "8080:80" '{"masqAll":true}'
}

@test "snat:false: translation, but no masquerade and no sysctl" {
	topology
	serve a 80
	add a 2 "8080:80" '{"snat":false,"masqAll":true}'
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	answers a tcp 192.0.2.1 8080 ""
	same "route_localnet" 0 "$(localnet)"
	! is_cnibox || ! host nft list ruleset | grep masq
	check a 2 "8080:80" '{"snat":false,"masqAll":true}'
}

@test "mistakes in the config are refused before anything is made" {
	topology
	fails 7 'Invalid container port number: 0' ADD portmap a <<<"$(conf a 2 "8080:80 8080:0")"
	fails 7 'Invalid host port number: 0' ADD portmap a <<<"$(conf a 2 "0:80")"
	fails 7 'Cannot specify externalSetMarkChain and markMasqBit' ADD portmap a \
		<<<"$(conf a 2 "8080:80" '{"externalSetMarkChain":"X","markMasqBit":3}')"
	fails 7 'MasqMarkBit must be between 0 and 31' ADD portmap a <<<"$(conf a 2 "8080:80" '{"markMasqBit":32}')"
	is_cnibox || return 0
	for bad in 70000:80 8080:65536 8080:80/icmp 8080:80@nowhere 8080:80@10.0.0.1/8; do
		fails 7 'portMappings.0.: ' ADD portmap a <<<"$(conf a 2 "$bad")"
	done
	fails 7 'host port 8080/tcp .*mapped twice' ADD portmap a <<<"$(conf a 2 "8080:80 8080:81@0.0.0.0")"
	fails 7 'unrecognized backend "x"' ADD portmap a <<<"$(conf a 2 "8080:80" '{"backend":"x"}')"
	fails 7 'nftables backend was requested but configuration contains iptables-specific options .externalSetMarkChain conditionsV4' \
		ADD portmap a <<<"$(conf a 2 "8080:80" '{"backend":"nftables","externalSetMarkChain":"X","conditionsV4":["-s","1.2.3.4"]}')"
	fails 7 'iptables backend was requested but configuration contains nftables-specific options .conditionsV6' \
		ADD portmap a <<<"$(conf a 2 "8080:80" '{"backend":"iptables","conditionsV6":["ip6 saddr fd00::1"]}')"
	fails 7 'portMappings' ADD portmap a <<<"$(conf a 2 "8080:80" '{"runtimeConfig":{"portMappings":{}}}')"
	fails 7 'hostPort' ADD portmap a <<<"$(conf a 2 "8080:80" '{"runtimeConfig":{"portMappings":[{"containerPort":1,"hostPort":"8080"}]}}')"
	lacks '.' nft list ruleset
	# The same thing said twice is no mistake.
	add a 2 "8080:80 8080:80@0.0.0.0 8080:80@::" '{"externalSetMarkChain":"KUBE-MARK-MASQ","backend":"iptables"}'
	same "entries" 1 "$(count ports4)"
}

@test "containers do not reach what listens on the node's loopback addresses" {
	only_cnibox "Go opens that hole"
	topology
	serve host 631
	answers host tcp 127.0.0.1 631 "host 127.0.0.1"
	host ip addr add 192.0.2.53/32 dev lo
	add a 2 "8080:80"
	same "route_localnet" 1 "$(localnet)"
	inside a sh -c 'ip route del local 127.0.0.0/8 table local; ip route del local 127.0.0.1 table local;
		ip addr del 127.0.0.1/8 dev lo; ip route add 127.0.0.1 via 10.22.0.1'
	answers a tcp 10.22.0.1 631 "host 10.22.0.2"
	answers a tcp 127.0.0.1 631 ""
}

# flow SRC SPORT DST DPORT REPLYSRC REPLYSPORT: a UDP flow as conntrack would have it.
flow() {
	host conntrack -I -p udp -t 120 -s "$1" --sport "$2" -d "$3" --dport "$4" -r "$5" --reply-port-src "$6" \
		-q "$1" --reply-port-dst "$2" -u SEEN_REPLY >/dev/null 2>"$T/ct.err" || { cat "$T/ct.err" >&2 && return 1; }
}
flows() { { host conntrack -L -p udp -f ipv4; host conntrack -L -p udp -f ipv6; } 2>/dev/null | grep -c "sport=$1 "; }
# kept SPORT 0|1
kept() { same "flows from port $1" "$2" "$(flows "$1")"; }

@test "ADD flushes the UDP flows to its port, and no others" {
	only_cnibox "Go flushes every flow to that port number"
	topology
	flow 192.0.2.9 1001 192.0.2.1 53 192.0.2.1 53       # to the node itself: stale
	flow 192.0.2.9 1002 192.0.2.1 53 10.22.0.3 53       # to another container: stale
	flow 192.0.2.9 1003 192.0.2.1 53 10.22.0.2 53       # to this container already
	flow 10.22.0.3 1004 198.51.100.9 53 198.51.100.9 53 # passes through
	flow 192.0.2.9 1005 192.0.2.1 54 192.0.2.1 54       # another port
	flow 192.0.2.9 1006 10.22.0.1 5353 10.22.0.1 5353   # another address than hostIP
	flow 192.0.2.9 1007 192.0.2.1 5353 192.0.2.1 5353
	flow fd99::9 1008 fd99::1 53 fd99::1 53
	flow fd99::9 1009 fd98::9 53 fd98::9 53
	flow 192.0.2.9 1010 10.22.0.2 53 10.22.0.2 53       # to the container directly
	add a 2 "53:53/udp 5353:53/udp@192.0.2.1"
	kept 1001 0
	kept 1002 0
	kept 1003 1
	kept 1004 1
	kept 1005 1
	kept 1006 1
	kept 1007 0
	kept 1008 0
	kept 1009 1
	kept 1010 1
}

@test "DEL flushes the UDP flows that led to the container, and no others" {
	only_cnibox "Go flushes nothing on DEL"
	topology
	add a 2 "53:53/udp 5353:54/udp@192.0.2.1"
	flow 192.0.2.9 1001 192.0.2.1 53 10.22.0.2 53
	flow 192.0.2.9 1002 192.0.2.1 53 10.22.0.3 53
	flow 10.22.0.3 1003 198.51.100.9 53 198.51.100.9 53
	flow 192.0.2.9 1004 192.0.2.1 53 192.0.2.1 53
	flow 192.0.2.9 1005 192.0.2.1 5353 10.22.0.2 54
	flow fd99::9 1006 fd99::1 53 fd22::2 53
	flow 10.22.0.3 1007 10.22.0.2 53 10.22.0.2 53
	del a 2 -
	kept 1001 0
	kept 1002 1
	kept 1003 1
	kept 1004 1
	kept 1005 0
	kept 1006 0
	kept 1007 1
}

@test "a UDP client that keeps talking follows its port to the next container" {
	only_cnibox "Go does not flush on DEL"
	topology
	serve a 53 udp
	serve b 53 udp
	talk() { inside x timeout 60 socat -t5 - UDP4:192.0.2.1:5300,bind=:4000,reuseaddr <<<hello; }
	add a 2 "5300:53/udp"
	same "answer" "a 192.0.2.9" "$(talk)"
	del a 2 -
	add b 3 "5300:53/udp"
	same "answer" "b 192.0.2.9" "$(talk)"
}

@test "GC removes what is not valid any more, of this network" {
	only_cnibox "Go has no GC"
	topology
	VERSION=1.1.0
	add a 2 "8080:80"
	add b 3 "8081:80" '{"conditionsV4":["-i","vx"]}'
	NET=net2 IFNAME=eth1 add a 22 "8082:80"
	ok GC portmap - <<<'{"cniVersion":"1.1.0","name":"net1","type":"portmap","cni.dev/valid-attachments":[{"containerID":"a","ifname":"eth0"}]}'
	elements ports4 | jq_is '[.nftables[1].map.elem[][0].elem.val.concat[1]] | sort' '[8080,8082]'
	same "maps of conditions" "" "$(host nft list maps | grep -E "ports4_|hosts4_")"
	ok GC portmap - <<<'{"cniVersion":"1.1.0","name":"net3","type":"portmap","cni.dev/valid-attachments":[]}'
	same "entries" 2 "$(count ports4)"
	ok GC portmap - <<<'{"cniVersion":"1.1.0","name":"net1","type":"portmap"}'
	elements ports4 | jq_is '[.nftables[1].map.elem[][0].elem.val.concat[1]]' '[8082]'
	ok GC portmap - <<<'{"cniVersion":"1.1.0","name":"net2","type":"portmap"}'
	lacks '.' nft list ruleset
	ok GC portmap - <<<'{"cniVersion":"1.1.0","name":"net2","type":"portmap"}'
}

@test "STATUS" {
	only_cnibox "Go has no STATUS"
	ok STATUS portmap - <<<'{"cniVersion":"1.1.0","name":"net1","type":"portmap"}'
	same "output" "" "$output"
}

@test "what the Go plugin's iptables rules left is removed" {
	only_cnibox "about changing from Go"
	[ -x "$GO_DIR/portmap" ] || skip "no Go plugin in $GO_DIR"
	topology
	ok ADD "$GO_DIR/portmap" a <<<"$(conf a 2 "8080:80 8081:81")"
	ok ADD "$GO_DIR/portmap" b <<<"$(conf b 3 "8082:80")"
	host iptables-save | grep -q 'to-destination 10.22.0.2:80'
	del a 2 -
	lacks '10\.22\.0\.2:|8080' iptables-save
	lacks 'fd22::2' ip6tables-save
	host iptables-save | grep -q 'to-destination 10.22.0.3:80'
	del b 3 -
	lacks 'CNI-DN-' iptables-save
	lacks 'CNI-DN-' ip6tables-save
}

@test "what the Go plugin's nftables rules left is removed" {
	only_cnibox "about changing from Go"
	topology
	for f in ip ip6; do
		addr=10.22.0.2 other=10.22.0.3 to=10.22.0.2:80
		[ $f = ip ] || { addr=fd22::2 other=fd22::3 to='[fd22::2]:80'; }
		host nft -f - <<-EOF
			table $f cni_hostport {
				chain hostports {
					tcp dport 8080 dnat to $to comment "a"
					tcp dport 8081 dnat to $other comment "b"
				}
				chain hostip_hostports {
					$f daddr $other tcp dport 8083 dnat to $to comment "a"
				}
				chain masquerading {
					type nat hook postrouting priority 100;
					$f saddr $addr $f daddr $addr masquerade comment "a"
					$f saddr $other $f daddr $other masquerade comment "b"
				}
			}
		EOF
	done
	# Another network of the same container.
	host nft add rule ip cni_hostport hostports tcp dport 8084 dnat to 10.33.0.2:80 comment '"a"'
	del a 2 "8080:80"
	lacks '8080|8083|fd22::2 |10.22.0.2 ' nft list ruleset
	host nft list ruleset | grep -q 8084
	same "rules of b" 4 "$(host nft list ruleset | grep -c 'comment "b"')"
	del a 2 - '{"prevResult":null}'
	lacks 'comment "a"' nft list ruleset
}

@test "the rules survive being saved and restored by nft" {
	only_cnibox "about our table"
	topology
	add a 2 "8080:80 8081:81@192.0.2.1 53:53/udp" '{"conditionsV4":["-i","v+"]}'
	add b 3 "8082:80" '{"masqAll":true}'
	host nft -s list ruleset >"$T/before"
	host nft flush ruleset
	host nft -f "$T/before"
	host nft -s list ruleset >"$T/after"
	diff "$T/before" "$T/after"
	check a 2 "8080:80 8081:81@192.0.2.1 53:53/udp" '{"conditionsV4":["-i","v+"]}'
	del a 2 -
	del b 3 -
	lacks '.' nft list ruleset
}

@test "a thousand ports" {
	only_cnibox "Go takes minutes"
	topology
	serve a 80
	maps=$(for i in {1..1000}; do echo -n "$((20000 + i)):80 "; done)
	add a 2 "${maps% }"
	answers x tcp 192.0.2.1 20001 "a 192.0.2.9"
	answers x tcp 192.0.2.1 21000 "a 192.0.2.9"
	answers b tcp 10.22.0.1 20500 "a 10.22.0.1"
	check a 2 "${maps% }"
	del a 2 "${maps% }"
	answers x tcp 192.0.2.1 21000 ""
	! is_cnibox || nothing_left cni0 va vb vx
}

# storm N ID NUMBER PORT: ADDs and DELs of one attachment, ending with DEL.
storm() {
	local conf i
	conf=$(conf "$2" "$3" "$4:80" '{"cniVersion":"1.0.0"}')
	for ((i = 0; i < $1; i++)); do
		for verb in ADD DEL; do
			CNI_COMMAND=$verb CNI_CONTAINERID=$2 CNI_NETNS=/run/netns/a CNI_IFNAME=eth0 CNI_PATH=$CNI_PLUGIN_DIR \
				nsenter -t "$HOLDER" -m -n -- "$CNI_PLUGIN_DIR/portmap" <<<"$conf" >"$T/storm-$2" 3>&- ||
				{ cat "$T/storm-$2" >>"$T/storm-errors" && echo >>"$T/storm-errors"; }
		done
	done
}

@test "many at once" {
	topology
	only_cnibox "Go's steps are not atomic"
	pids=()
	for i in {1..12}; do
		storm 15 "s$i" $((100 + i)) $((7000 + i)) &
		pids+=($!)
	done
	wait "${pids[@]}"
	[ ! -s "$T/storm-errors" ] || { head -c 2000 "$T/storm-errors" && return 1; }
	lacks '.' nft list ruleset
	same "route_localnet" 0 "$(localnet)"
}

@test "many at once with conditions, and one attachment from two sides" {
	only_cnibox "Go's steps are not atomic"
	topology
	pids=()
	for i in 1 2 3 4; do
		storm 8 "s$i" $((100 + i)) $((7000 + i)) &
		pids+=($!)
		storm 8 same 120 7100 &
		pids+=($!)
	done
	wait "${pids[@]}"
	[ ! -s "$T/storm-errors" ] || { head -c 2000 "$T/storm-errors" && return 1; }
	lacks '.' nft list ruleset
}

@test "in a list behind bridge" {
	need_applet bridge host-local
	topology
	netns d
	list='{"cniVersion":"1.0.0","name":"net1","plugins":[
		{"type":"bridge","bridge":"cni9","isGateway":true,"ipMasq":true,
			"ipam":{"type":"host-local","ranges":[[{"subnet":"10.44.0.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}]}},
		{"type":"portmap","capabilities":{"portMappings":true}}]}'
	CAP_ARGS='{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}'
	chain_ok ADD "$list" d
	serve d 80
	answers x tcp 192.0.2.1 8080 "d 192.0.2.9"
	answers host tcp 127.0.0.1 8080 "d 10.44.0.1"
	answers d tcp 192.0.2.1 8080 "d 10.44.0.1"
	! is_cnibox || chain_ok CHECK "$list" d
	chain_ok DEL "$list" d
	answers x tcp 192.0.2.1 8080 ""
	! is_cnibox || nothing_left cni0 va vb vx cni9
}
