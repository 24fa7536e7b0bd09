# cnitool and an interface of the same name that somebody else put into the namespace: docker's eth0, an
# operator's. An ADD fails on it; neither the rollback nor what cleans up later may take it.

load helpers
load cnitool

setup() {
	sandbox && tool_setup
	only_ours "v1.3.0 never undoes a failed ADD"
}
teardown() { sandbox_end; }

bridge='{"type":"bridge","bridge":"br0","ipam":{"type":"host-local","subnet":"10.9.0.0/24"}}'

# foreign NAME: the namespace, with an eth0 that is connected to a link of the node.
foreign() {
	netns "$1"
	host ip link add "of-$1" type veth peer name eth0 netns "$1"
	FOREIGN=$(inside "$1" ip -j link show eth0 | jq -r '.[0].address')
}

# untouched NAME: it is still there, and the same.
untouched() {
	inside_is "$1" '.[0].address' "$FOREIGN" ip -j link show eth0
	host ip link show "of-$1" >/dev/null
}

no_lease() { same leases '' "$(host sh -c 'ls /var/lib/cni/networks/*/10.* 2>/dev/null')"; }

# with_go: the plugins of the lists are the Go plugins.
with_go() {
	go_plugin bridge
	CNI_PATH=$BIN:${GO_PLUGIN%/*}
	export CNI_PATH
}

refused_by() {
	tool add "$1" /run/netns/c1
	[ "$status" -eq 1 ] || show "an ADD onto a foreign eth0 should fail"
	untouched c1
	no_lease
	no_entry
}

@test "an ADD that fails on a foreign interface leaves it" {
	need_applet bridge host-local
	list n "$bridge"
	foreign c1
	refused_by n
	says 'eth0'
}

@test "an ADD that fails on a foreign interface leaves it, the Go plugins'" {
	with_go
	list n "$bridge"
	foreign c1
	refused_by n
}

@test "a plugin that is not found is no reason to delete anything" {
	local how
	with_go
	foreign c1
	for how in "nosuch bridge" "bridge nosuch"; do
		list n "${how/bridge/$bridge}"
		refused_by n
	done
}

@test "only plugins that were called get a DEL" {
	double a b c
	list n 'a b c'
	refuses b ADD
	tool add n /x
	called 'ADD a,ADD b,DEL b,DEL a'
	list n 'a nosuch c'
	tool add n /x
	called 'ADD a,DEL a'
}

@test "what succeeded beside a foreign interface is undone, what failed on it is not asked" {
	double a b
	list n 'a b'
	foreign c1
	refuses b ADD
	refused_by n
	called 'ADD a,ADD b,DEL a'
	same "namespace of that DEL" /run/netns/c1 "$(env_of a DEL CNI_NETNS)"
}

# killed LIST...: the ADD of that list onto c1 in which the plugin `fatal` kills cnitool.
killed() {
	double fatal
	does fatal ADD 'kill -KILL $PPID; exit 1'
	list n "$1" '"cniVersion":"1.0.0"'
	tool add n /run/netns/c1
	[ "$status" -eq 137 ] || show "cnitool should have been killed"
	same "entries" 1 "$(entry | wc -l)"
}

@test "an ADD that was killed beside a foreign interface: gc leaves that, the Go plugins' too" {
	local how
	foreign c1
	for how in ours go; do
		[ $how = ours ] || with_go
		killed "fatal $bridge"
		works gc --all n
		untouched c1
		no_entry
	done
}

@test "an ADD that was killed beside a foreign interface: so do DEL, and the next ADD" {
	with_go
	foreign c1
	killed "fatal $bridge"
	works del n /run/netns/c1
	untouched c1
	no_entry
	killed "fatal $bridge"
	does fatal ADD ''
	tool add n /run/netns/c1
	[ "$status" -eq 1 ] || show "an ADD onto a foreign eth0 should fail"
	untouched c1
	works gc --all n
	untouched c1
	no_entry
}

@test "an ADD that was killed after it made the interface: gc and DEL take that" {
	local how
	for how in gc del; do
		with_go
		netns "$how"
		double fatal
		does fatal ADD 'kill -KILL $PPID; exit 1'
		list n "$bridge fatal"
		tool add n "/run/netns/$how"
		inside "$how" ip link show eth0
		case $how in
		gc) works gc --all n ;;
		del) works del n "/run/netns/$how" ;;
		esac
		same "links" '["lo"]' "$(inside "$how" ip -j link | jq -c '[.[].ifname]')"
		no_lease
		no_entry
	done
}

@test "an ADD that was killed after it made the interface: the next one takes that down and works" {
	local how
	for how in ours go; do
		[ $how = ours ] || with_go
		netns "$how"
		double fatal
		does fatal ADD 'kill -KILL $PPID; exit 1'
		list n "$bridge fatal"
		tool add n "/run/netns/$how"
		same "links" '["lo","eth0"]' "$(inside "$how" ip -j link | jq -c '[.[].ifname]')"
		does fatal ADD ''
		rm "$T/calls"
		works add n "/run/netns/$how"
		called 'DEL fatal,ADD fatal'
		same "leases" 1 "$(host sh -c 'ls /var/lib/cni/networks/n/10.* | wc -l')"
		works del n "/run/netns/$how"
		no_lease
		no_entry
	done
}

@test "an ADD that was killed and cannot be taken down stays on record, and the next one fails" {
	double a b
	list n 'a b'
	does b ADD 'kill -KILL $PPID; exit 1'
	tool add n /x
	does b ADD ''
	refuses a DEL 5 'a stays'
	rm "$T/calls"
	dies 'failed to clean up after an earlier add of eth0: plugin type="a" failed (delete): a stays' add n /x
	called 'DEL b,DEL a'
	cached '[.networkName, has("result")]' '["n", false]'
	does a DEL :
	works add n /x
	called 'DEL b,DEL a,ADD a,ADD b'
	cached 'has("attempt")' false
}

@test "a rollback gives each plugin the last result there was" {
	double a b c
	list n 'a b c'
	refuses c ADD
	tool add n /x
	given b DEL .prevResult.interfaces '[{"name":"b"}]'
	given a DEL .prevResult.interfaces '[{"name":"b"}]'
	list n 'a b c' '"cniVersion":"0.3.1"'
	tool add n /x
	given a DEL 'has("prevResult")' false
}

@test "an ADD that was killed: another namespace by the same name is left alone" {
	with_go
	netns c1
	killed "fatal $bridge"
	host ip netns del c1
	foreign c1
	works gc --all n
	untouched c1
	no_entry
	host ip netns del c1
	netns c1
	killed "fatal $bridge"
	host ip netns del c1
	foreign c1
	does fatal ADD ''
	tool add n /run/netns/c1
	[ "$status" -eq 1 ] || show "an ADD onto a foreign eth0 should fail"
	untouched c1
	works gc --all n
	untouched c1
	no_entry
}

# living: an attachment of list n in c1.
living() {
	netns c1
	list n "$bridge"
	works add n /run/netns/c1
	LIVING=$(inside c1 ip -j addr show eth0 | jq -c '.[0] | [.address, .addr_info[0].local]')
	LEASES=$(host sh -c 'ls /var/lib/cni/networks/*/10.*')
}

# lives: it is as it was.
lives() {
	same "the interface" "$LIVING" "$(inside c1 ip -j addr show eth0 | jq -c '.[0] | [.address, .addr_info[0].local]')"
	same "the leases" "$LEASES" "$(host sh -c 'ls /var/lib/cni/networks/*/10.*')"
}

each_kind() {
	need_applet bridge host-local
	"$1"
	host sh -c 'rm -rf /var/lib/cni/* && ip netns del c1 && ip link del br0'
	with_go
	"$1"
}

lost_cache() {
	living
	host rm -rf /var/lib/cni/results
	tool add n /run/netns/c1
	[ "$status" -eq 1 ] || show "the second ADD should fail"
	lives
	no_entry
}
@test "an attachment whose cache entry was lost survives a second ADD" { each_kind lost_cache; }

other_spelling() {
	local path
	living
	host ln -sfn netns /run/linked
	for path in /var/run/netns/c1 /run/linked/c1 "/proc/$(inside c1 sh -c 'sleep 60 >&- 2>&- <&- & echo $!')/ns/net"; do
		tool add n "$path"
		[ "$status" -eq 1 ] || show "the second ADD should fail"
		lives
	done
	works check n /run/netns/c1
}
@test "another spelling of the namespace does no harm" { each_kind other_spelling; }

other_network() {
	living
	list m "${bridge/10.9/10.8}"
	tool add m /run/netns/c1
	[ "$status" -eq 1 ] || show "the second network should be refused the interface's name"
	lives
	works check n /run/netns/c1
}
@test "a second network under the same interface name does no harm" { each_kind other_network; }

@test "two ADDs under two spellings at once: one attaches, the other does no harm" {
	local a=0 b=0
	with_go
	double slow
	does slow ADD "for i in \$(seq 500); do [ ! -e $T/go ] || break; sleep 0.01; done; cat $T/slow.ADD.stdin >/dev/null"
	netns c1
	list n "slow $bridge"
	NETCONFPATH=$NET host "$CNITOOL" add n /run/netns/c1 >"$T/1.out" 2>"$T/1.err" 3>&- &
	local one=$!
	NETCONFPATH=$NET host "$CNITOOL" add n /var/run/netns/c1 >"$T/2.out" 2>"$T/2.err" 3>&- &
	local two=$!
	wait_for 10 test -e "$T/calls"
	: >"$T/go"
	wait $one || a=$?
	wait $two || b=$?
	same "how many failed" 1 $((a + b))
	inside c1 ip link show eth0
	same "leases" 1 "$(host sh -c 'ls /var/lib/cni/networks/n/10.* | wc -l')"
}

# made_anew: the namespace of an attachment goes, and one comes to its path that has an eth0 of its own.
made_anew() {
	list n "$bridge"
	netns c1
	works add n /run/netns/c1
	host ip netns del c1
	foreign c1
	works gc --all n
	untouched c1
	no_entry
	no_lease
}
@test "gc of an attachment whose namespace was made anew leaves the interface that is there now" {
	need_applet bridge host-local
	made_anew
	host sh -c 'ip netns del c1; rm -rf /var/lib/cni/*'
	with_go
	made_anew
}
