# The helpers themselves: a test that could touch the machine, or could not fail, proves nothing.

load helpers

setup() { sandbox; }
teardown() { sandbox_end; }

@test "the node starts with nothing but lo, which is up" {
	host_is '[.[].ifname]' '["lo"]' ip -j link
	host_is '.[0].flags | index("UP") != null' true ip -j link
	same "/sys/class/net" lo "$(host sh -c 'ls /sys/class/net | grep -v bonding_masters')"
	host_is . '[]' ip -j route
}

@test "a link made on the node exists there and nowhere else" {
	host ip link add cnibox-only0 type veth peer name cnibox-only1
	host ip link show cnibox-only0
	[ -e "/proc/$HOLDER/root/sys/class/net/cnibox-only0" ]
	[ ! -e /sys/class/net/cnibox-only0 ]
	run ip link show cnibox-only0
	[ "$status" -ne 0 ]
}

@test "the machine's /run, /var/lib/cni and /etc/cni are out of reach" {
	local d
	for d in /run/netns /run/cnibox /run/cni /var/lib/cni /etc/cni/net.d; do
		same "$d is empty" '' "$(host ls -A $d)"
		host touch "$d/cnibox-sandbox-$$"
		host test -e "$d/cnibox-sandbox-$$"
		[ ! -e "$d/cnibox-sandbox-$$" ]
	done
	host touch "/etc/cnibox-sandbox-$$" || :
	if [ ! -d /etc/cni ]; then
		[ ! -e "/etc/cnibox-sandbox-$$" ]
	fi
	rm -f "/etc/cnibox-sandbox-$$"
}

@test "no mount of the sandbox shows outside" {
	host mount -t tmpfs cnibox-proof /mnt
	host grep -q cnibox-proof /proc/self/mounts
	run grep -c -e cnibox-proof -e '^sandbox ' /proc/self/mounts
	same "mounts outside" 0 "$output"
}

@test "settings of the node are the node's and start from known values" {
	local before after
	before=$(cat /proc/sys/net/ipv4/ip_forward)
	same "ip_forward at the start" 0 "$(host cat /proc/sys/net/ipv4/ip_forward)"
	host sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
	same "ip_forward inside" 1 "$(host cat /proc/sys/net/ipv4/ip_forward)"
	after=$(cat /proc/sys/net/ipv4/ip_forward)
	same "ip_forward outside" "$before" "$after"
}

@test "nftables rules stay on the node" {
	host nft add table inet cnibox_sandbox_proof
	host nft list tables | grep -q cnibox_sandbox_proof
	run nft list tables
	[[ $output != *cnibox_sandbox_proof* ]]
}

@test "a named namespace is a namespace of its own with lo up" {
	netns c1
	inside_is c1 '.[0].flags | index("UP") != null' true ip -j link
	host ip link add v0 type veth peer name v1 netns c1
	inside_is c1 '[.[].ifname] | sort' '["lo","v1"]' ip -j link
	host_is '[.[].ifname] | sort' '["lo","v0"]' ip -j link
	[ ! -e /run/netns/c1 ]
}

@test "variables of the caller do not reach a plugin, those of the test do" {
	cat >"$T/env" <<-'END'
		#!/bin/sh
		cat >/dev/null
		env | grep ^CNI_ | sort
	END
	chmod +x "$T/env"
	CNI_IFNAME=wrong CNI_COMMAND=wrong CNI_ARGS='A=b' CNI_PATH=/p cni ADD "$T/env" id1 net7 </dev/null
	same environment "CNI_ARGS=A=b
CNI_COMMAND=ADD
CNI_CONTAINERID=id1
CNI_IFNAME=net7
CNI_NETNS=/run/netns/id1
CNI_PATH=/p
CNI_PLUGIN_DIR=$CNI_PLUGIN_DIR" "$output"
	NETNS='' cni DEL "$T/env" id1 </dev/null
	[[ $output == *$'CNI_NETNS=\n'* ]]
	cni GC "$T/env" id1 </dev/null
	[[ $output == *$'CNI_CONTAINERID=\n'* && $output == *$'CNI_IFNAME=\n'* ]]
}

@test "stdout, stderr and the status of a call are kept apart" {
	printf '#!/bin/sh\ncat; echo noise >&2; exit 3\n' >"$T/p"
	chmod +x "$T/p"
	cni ADD "$T/p" c <<<'{"a":1}'
	same status 3 "$status"
	same stdout '{"a":1}' "$output"
	same stderr noise "$stderr"
}

# expect_failure CMD...: the assertion must fail.
expect_failure() {
	if ("$@") >"$T/assertion" 2>&1; then
		echo "should have failed: $*" >&2
		return 1
	fi
}

@test "the assertions can fail" {
	status=0 output='{"a":1,"b":"x"}' stderr=''
	is .a 1
	is .b x
	is '.a, .b' '[1,"x"]'
	holds '.a == 1'
	expect_failure is .a 2
	expect_failure is .a '"1"'
	expect_failure is .c 1
	expect_failure is '.[' 1
	expect_failure holds '.a == 2'
	expect_failure same x a b
	expect_failure host_is . '[]' ip -j link
	expect_failure host_is . '[]' false
	expect_failure wait_for 0 false
	wait_for 1 true
}

@test "ok and fails tell success, failure, crash and noise apart" {
	local body
	mkdir "$T/bin"
	double() { printf '#!/bin/sh\ncat >/dev/null\n%s\n' "$1" >"$T/bin/p" && chmod +x "$T/bin/p"; }
	double 'exit 0'
	ok ADD "$T/bin/p" c <<<'{}'
	expect_failure fails any . ADD "$T/bin/p" c <<<'{}'
	double 'echo "{\"code\":7,\"msg\":\"no such thing\",\"details\":\"deep\"}"; exit 1'
	fails any 'no such thing; deep' ADD "$T/bin/p" c <<<'{}'
	expect_failure ok ADD "$T/bin/p" c <<<'{}'
	expect_failure fails any other ADD "$T/bin/p" c <<<'{}'
	for body in 'kill -SEGV $$' 'exit 1' 'echo "{}"; exit 1' 'echo "{\"code\":7,\"msg\":\"a\"}"; exit 99' \
		'echo "{\"code\":7,\"msg\":\"a\"}{\"code\":7,\"msg\":\"a\"}"; exit 1' \
		'echo "{\"code\":7,\"msg\":\"a\"} x"; exit 1'; do
		double "$body"
		expect_failure ok ADD "$T/bin/p" c <<<'{}'
		expect_failure fails any a ADD "$T/bin/p" c <<<'{}'
	done
}

@test "nothing_left sees links, leases, tables, rules and state" {
	nothing_left
	host ip link add left0 type veth peer name left1
	expect_failure nothing_left
	nothing_left left0 left1
	host ip link del left0
	nothing_left

	host mkdir -p /var/lib/cni/networks/n
	host touch /var/lib/cni/networks/n/last_reserved_ip.0 /var/lib/cni/networks/n/lock
	nothing_left
	host touch /var/lib/cni/networks/n/10.0.0.2
	expect_failure nothing_left
	host rm /var/lib/cni/networks/n/10.0.0.2

	host nft add table ip mine
	host nft add chain ip mine c
	nothing_left
	host nft add rule ip mine c accept comment '"cnibox 0123"'
	expect_failure nothing_left
	host nft flush ruleset
	host nft add table inet cnibox
	expect_failure nothing_left
	host nft flush ruleset

	host touch /run/cnibox/empty
	nothing_left
	host sh -c 'echo x >/run/cnibox/state'
	expect_failure nothing_left
}

@test "serve and ask carry a real packet, by TCP and UDP, IPv4 and IPv6" {
	netns c1
	host ip link add v0 type veth peer name eth0 netns c1
	host ip addr add 10.9.0.1/24 dev v0
	host ip addr add fd00:9::1/64 dev v0 nodad
	host ip link set v0 up
	inside c1 ip addr add 10.9.0.2/24 dev eth0
	inside c1 ip addr add fd00:9::2/64 dev eth0 nodad
	inside c1 ip link set eth0 up
	serve c1 80
	serve c1 53 udp
	serve c1 80 tcp -6
	serve c1 53 udp -6
	serve host 81
	same "TCP" "c1 10.9.0.1" "$(ask host tcp 10.9.0.2 80)"
	same "UDP" "c1 10.9.0.1" "$(ask host udp 10.9.0.2 53)"
	same "again" "c1 10.9.0.1" "$(ask host udp 10.9.0.2 53)"
	same "TCP over IPv6" "c1 fd00:9::1" "$(ask host tcp fd00:9::2 80)"
	same "UDP over IPv6" "c1 fd00:9::1" "$(ask host udp fd00:9::2 53)"
	same "towards the node" "host 10.9.0.2" "$(ask c1 tcp 10.9.0.1 81)"
	same "a closed port" "" "$(knock host tcp 10.9.0.2 8080)"
	same "a closed UDP port" "" "$(knock host udp 10.9.0.2 8080)"
}

@test "chain runs a list as libcni does" {
	local list verb
	mkdir "$T/bin"
	for p in first second; do
		cat >"$T/bin/$p" <<-END
			#!/bin/sh
			cat >"$T/$p.\$CNI_COMMAND"
			echo $p >>"$T/order"
			[ "\$CNI_COMMAND" != ADD ] || echo '{"cniVersion":"1.0.0","dns":{"domain":"$p"}}'
		END
		chmod +x "$T/bin/$p"
	done
	list='{"cniVersion":"1.0.0","name":"n","plugins":[
		{"type":"first","name":"x","capabilities":{"mac":true,"ips":false}},{"type":"second"}]}'
	CNI_PLUGIN_DIR=$T/bin
	CAP_ARGS='{"mac":"02:00:00:00:00:01","ips":["10.0.0.1/8"]}' chain_ok ADD "$list" c1
	is .dns.domain second
	jq_is . '{"capabilities":{"ips":false,"mac":true},"cniVersion":"1.0.0","name":"n","type":"first",
		"runtimeConfig":{"mac":"02:00:00:00:00:01"}}' <"$T/first.ADD"
	jq_is .prevResult.dns.domain first <"$T/second.ADD"
	chain_ok CHECK "$list" c1
	jq_is .prevResult.dns.domain second <"$T/first.CHECK"
	chain_ok DEL "$list" c1
	jq_is .prevResult.dns.domain second <"$T/second.DEL"
	same "order" "first second first second second first" "$(tr '\n' ' ' <"$T/order" | sed 's/ $//')"
	chain_ok DEL "$list" c1
	jq_is .prevResult null <"$T/second.DEL"
	VALID='[{"containerID":"c9","ifname":"eth0"}]' chain_ok GC "$list" c1
	jq_is '.["cni.dev/valid-attachments"][0].containerID' c9 <"$T/first.GC"
}

@test "sandbox_end ends what the test started, and its namespaces" {
	netns c1
	spawn host sleep 1000
	spawn c1 sleep 1000
	local first=${PIDS[0]} second=${PIDS[1]} holder=$HOLDER
	kill -0 "$first" "$second" "$holder"
	sandbox_end
	wait_for 2 eval "! kill -0 $first && ! kill -0 $second && ! kill -0 $holder"
}
