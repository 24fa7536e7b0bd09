# cnitool: gc, and calls that wait for each other.

load helpers
load cnitool

setup() { sandbox && tool_setup; }
teardown() { sandbox_end; }

# ---- gc ---------------------------------------------------------------------------------------

@test "gc in the Go tool's form deletes every cached attachment of the network, and runs GC" {
	double a b
	list n 'a b' '"cniVersion": "1.1.0"'
	works add n /x
	CNI_IFNAME=net1 works add n /y
	rm "$T/calls"
	silent gc n /z
	called 'DEL b,DEL a,DEL b,DEL a,GC a,GC b'
	no_entry
	for v in CNI_CONTAINERID CNI_NETNS CNI_IFNAME CNI_ARGS; do
		same "$v" '' "$(env_of a GC $v)"
	done
	given a GC 'has("prevResult")' false
}

@test "gc keeps what is valid, and the plugins get the list under both names" {
	only_ours "the Go tool knows no valid set"
	double a
	list n a '"cniVersion": "1.1.0"'
	works add n /x --id one
	works add n /x --id two
	works add n /x --id two -i net1
	works add n /x --id three
	rm "$T/calls"
	silent gc n --valid one/eth0 --valid=two/net1
	same "what is left" 'n-one-eth0 n-two-net1' "$(host ls /var/lib/cni/results | paste -sd' ')"
	called 'DEL a,DEL a,GC a'
	local want='[{"containerID":"one","ifname":"eth0"},{"containerID":"two","ifname":"net1"}]'
	given a GC '.["cni.dev/valid-attachments"]' "$want"
	given a GC '.["cni.dev/attachments"]' "$want"
	echo '[{"containerID":"two","ifname":"net1","x":1}]' >"$T/valid"
	silent gc n --valid-file "$T/valid"
	same "what is left" n-two-net1 "$(host ls /var/lib/cni/results)"
	given a GC '.["cni.dev/valid-attachments"]' '[{"containerID":"two","ifname":"net1"}]'
	NETCONFPATH=$NET CNI_PATH=$BIN host "$CNITOOL" gc n --valid-file - <"$T/valid"
	same "what is left" n-two-net1 "$(host ls /var/lib/cni/results)"
	silent gc n --all
	given a GC '.["cni.dev/valid-attachments"]' '[]'
	no_entry
}

@test "gc without a word about what is valid, or with a wrong one, deletes nothing" {
	only_ours "the Go tool knows no valid set"
	double a
	list n a '"cniVersion": "1.1.0"'
	works add n /x
	rm "$T/calls"
	for bad in '{}' '[{}]' '[{"containerID":"x"}]' '[' '' '["one/eth0"]' '[{"containerID":1,"ifname":2}]'; do
		printf '%s' "$bad" >"$T/valid"
		tool gc n --valid-file "$T/valid"
		same "status of $bad" 1 "$status"
	done
	for bad in one one/ /eth0 ''; do
		tool gc n --valid "$bad"
		same "status of --valid '$bad'" 1 "$status"
	done
	tool gc n --valid-file /nowhere
	same "status of a missing file" 1 "$status"
	tool gc n
	same "status of a bare gc" 1 "$status"
	called ''
	[ -n "$(entry n-)" ]
}

@test "gc of a network touches no other, whatever the names" {
	double a
	for n in n n-n nn N; do
		list $n a '"cniVersion": "1.1.0"'
		works add $n /x
		CNI_IFNAME=n works add $n /x
	done
	rm "$T/calls"
	silent gc n /x
	called 'DEL a,DEL a,GC a'
	same "of the others" 6 "$(host ls /var/lib/cni/results | wc -l)"
	silent gc n-n /x
	same "of the others" 'N N nn nn' \
		"$(host sh -c 'cat /var/lib/cni/results/*' | jq -r .networkName | sort | paste -sd' ')"
}

@test "gc of a real network takes links, addresses and leases of no other" {
	only_ours "the Go tool knows no valid set"
	need_applet bridge host-local
	for n in n m; do
		list $n "{\"type\":\"bridge\",\"bridge\":\"br$n\",\"isGateway\":true,\"ipam\":{\"type\":\"host-local\",\"subnet\":\"10.9.$((++i)).0/24\"}}"
	done
	for c in c1 c2; do
		netns $c
		works add n /run/netns/$c
		works add m /run/netns/$c -i net1
	done
	works gc n --valid "cnitool-$(printf /run/netns/c1 | sha512sum | cut -c 1-20)/eth0"
	inside c1 ping -c 1 -W 2 10.9.1.1
	inside c1 ping -c 1 -W 2 10.9.2.1
	inside c2 ping -c 1 -W 2 10.9.2.1
	inside_is c2 '[.[].ifname]' '["lo","net1"]' ip -j link
	same "leases" 3 "$(host sh -c 'ls /var/lib/cni/networks/*/10.*' | wc -l)"
	works gc n --all
	works gc m --all
	nothing_left brn brm
}

@test "gc of a list older than 1.1.0 deletes what is stale and runs no GC; disableGC does nothing" {
	double a
	list n a
	works add n /x
	silent gc n /x
	called 'ADD a,DEL a'
	no_entry
	list n a '"cniVersion": "1.1.0"' '"disableGC": true'
	works add n /x
	silent gc n /x
	called 'ADD a'
	[ -n "$(entry n-)" ]
}

@test "gc goes on after a failure and reports what failed" {
	double a b
	list n 'a b' '"cniVersion": "1.1.0"'
	works add n /x
	rm "$T/calls"
	refuses b DEL 5 'b stays'
	refuses a GC 5 'a has no broom'
	tool gc n /x
	same status 1 "$status"
	says "failed to delete stale attachment cnitool-[0-9a-f]* eth0: plugin type=\"b\" failed \\(delete\\): b stays"
	[[ $(cat "$T/calls") == *GC*GC* ]]
	[ -n "$(entry n-)" ]
}

@test "gc uses the configuration and the arguments of each attachment" {
	double a
	list n '{"type":"a","capabilities":{"k":true}}'
	CNI_ARGS=A=1 CAP_ARGS='{"k":1}' works add n /x
	CNI_ARGS=B=2 CAP_ARGS='{"k":2}' works gc n /y
	same CNI_ARGS A=1 "$(env_of a DEL CNI_ARGS)"
	same CNI_NETNS /x "$(env_of a DEL CNI_NETNS)"
	given a DEL .runtimeConfig '{"k":1}'
	only_ours "the Go tool takes the current configuration"
	list n '{"type":"a","x":1}'
	works add n /x
	list n nosuch
	works gc n --all
	given a DEL .x 1
	no_entry
}

# True when somebody waits for the lock of the cache.
waits_for_lock() { grep -q -- "-> OFDLCK .*:$(host stat -c %i /var/lib/cni/cnitool.lock) " /proc/locks; }

@test "calls for one container take turns, those for others do not wait" {
	only_ours "libcni takes no lock"
	double a
	list n a
	does a ADD "while [ ! -e $T/go ]; do sleep 0.02; done"
	export NETCONFPATH=$NET CNI_PATH=$BIN
	spawn host "$CNITOOL" add n /x
	wait_for 60 test -e "$T/a.ADD.env"
	spawn host sh -c "'$CNITOOL' del n /x; echo \$? >$T/del.status"
	wait_for 60 waits_for_lock
	[ ! -e "$T/del.status" ]
	works del n /y
	called 'ADD a,DEL a'
	: >"$T/go"
	wait_for 60 test -s "$T/del.status"
	same "status of del" 0 "$(cat "$T/del.status")"
	called 'DEL a'
	no_entry
}

@test "two ADDs at once: one attaches, the other is refused and does no harm" {
	only_ours "libcni runs both"
	need_applet bridge host-local
	netns c1
	list n '{"type":"bridge","bridge":"br0","isGateway":true,"ipam":{"type":"host-local","subnet":"10.9.0.0/24"}}'
	export NETCONFPATH=$NET CNI_PATH=$CNI_PLUGIN_DIR
	host sh -c "for i in 1 2 3 4; do
		('$CNITOOL' add n /run/netns/c1 >$T/out.\$i 2>$T/err.\$i; echo \$? >$T/status.\$i) & done; wait"
	same "statuses" '0 1 1 1' "$(sort "$T"/status.* | paste -sd' ')"
	same "refusals" 3 "$(cat "$T"/err.* | grep -c 'attached to network "n" already')"
	inside c1 ping -c 1 -W 2 10.9.0.1
	works del n /run/netns/c1
	nothing_left br0
}

@test "gc waits for an ADD in the making" {
	only_ours "libcni takes no lock"
	double a
	list n a
	does a ADD "while [ ! -e $T/go ]; do sleep 0.02; done"
	export NETCONFPATH=$NET CNI_PATH=$BIN
	spawn host "$CNITOOL" add n /x
	wait_for 60 test -e "$T/a.ADD.env"
	spawn host sh -c "'$CNITOOL' gc n --valid x/y; echo \$? >$T/gc.status"
	wait_for 60 waits_for_lock
	[ ! -e "$T/gc.status" ]
	called 'ADD a'
	: >"$T/go"
	wait_for 60 test -s "$T/gc.status"
	same "status of gc" 0 "$(cat "$T/gc.status")"
	called 'DEL a'
	no_entry
}
