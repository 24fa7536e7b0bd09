# Our cnitool and the Go cnitool on one node: either continues what the other began. Needs the Go
# cnitool v1.3.0 in $GO_CNITOOL or on PATH; every test is skipped where it is not to be had.

load helpers
load cnitool

setup() {
	go_cnitool
	sandbox && tool_setup
	OURS=$CNITOOL GO=$GO_CNITOOL
	is_ours || skip "CNITOOL is no cnibox"
}
teardown() { sandbox_end; }

# by TOOL ARG...: the call, by that tool.
by() { CNITOOL=$1 works "${@:2}"; }

chain_conf='{"type":"bridge","bridge":"br0","isGateway":true,"ipMasq":true,"ipam":{"type":"host-local","subnet":"10.9.0.0/24"}} {"type":"tuning","capabilities":{"mac":true},"sysctl":{"net.core.somaxconn":"501"}} {"type":"portmap","capabilities":{"portMappings":true}}'
caps='{"mac":"00:11:22:33:44:66","portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}'

# reachable: c1 answers to its neighbour and through the host port.
reachable() {
	[[ $(ask c2 tcp "$(inside c1 ip -j -4 addr show eth0 | jq -r '.[0].addr_info[0].local')" 80) == c1* ]] &&
		[[ $(ask host tcp 10.9.0.1 8080) == c1* ]]
}

# handover ADDER DELETER PATH1 [PATH2]: one adds with the plugins of PATH1, the other checks and
# deletes with those of PATH2.
handover() {
	local path2=${4:-$3}
	list n "$chain_conf"
	netns c1
	netns c2
	CNI_PATH=$3 CAP_ARGS=$caps by "$1" add n /run/netns/c1
	CNI_PATH=$3 by "$1" add n /run/netns/c2
	serve c1 80
	reachable
	CNI_PATH=$path2 CAP_ARGS=$caps by "$2" check n /run/netns/c1
	CNI_PATH=$path2 CAP_ARGS=$caps by "$2" del n /run/netns/c1
	same "links of c1" '["lo"]' "$(inside c1 ip -j link | jq -c '[.[].ifname]')"
	same "host port" '' "$(knock host tcp 10.9.0.1 8080)"
	inside c2 ping -c 1 -W 2 10.9.0.1
	CNI_PATH=$path2 by "$2" del n /run/netns/c2
	same leases '' "$(host sh -c 'ls /var/lib/cni/networks/n/10.* 2>/dev/null')"
	no_entry
	CNI_PATH=$3 CAP_ARGS=$caps by "$1" add n /run/netns/c1
	reachable_again
	CNI_PATH=$path2 CAP_ARGS=$caps by "$2" del n /run/netns/c1
	no_entry
}
reachable_again() { wait_for 60 eval '[[ $(knock host tcp 10.9.0.1 8080) == c1* ]]'; }

@test "added by ours, checked and deleted by the Go tool, with our plugins" {
	only_cnibox "the CHECK of portmap 1.1.1 misses IPv6 rules where there is no IPv6"
	need_applet bridge host-local tuning portmap
	handover "$OURS" "$GO" "$CNI_PLUGIN_DIR"
	nothing_left br0
}

@test "added by the Go tool, checked and deleted by ours, with our plugins" {
	only_cnibox "the CHECK of portmap 1.1.1 misses IPv6 rules where there is no IPv6"
	need_applet bridge host-local tuning portmap
	handover "$GO" "$OURS" "$CNI_PLUGIN_DIR"
	nothing_left br0
}

# Without portmap, for the sake of its CHECK.
@test "added by ours, deleted by the Go tool, with the Go plugins" {
	go_plugin tuning
	chain_conf=${chain_conf% *}
	reachable() { inside c2 ping -c 1 -W 2 10.9.0.1; }
	reachable_again() { inside c1 ping -c 1 -W 2 10.9.0.1; }
	handover "$OURS" "$GO" "${GO_PLUGIN%/*}"
}

@test "added by the Go tool, deleted by ours, with the Go plugins" {
	go_plugin tuning
	chain_conf=${chain_conf% *}
	reachable() { inside c2 ping -c 1 -W 2 10.9.0.1; }
	reachable_again() { inside c1 ping -c 1 -W 2 10.9.0.1; }
	handover "$GO" "$OURS" "${GO_PLUGIN%/*}"
}

@test "with the Go plugins behind both: host ports work and go" {
	need_applet bridge host-local tuning portmap
	go_plugin portmap
	list n "$chain_conf"
	netns c1
	CNI_PATH=${GO_PLUGIN%/*} CAP_ARGS=$caps by "$OURS" add n /run/netns/c1
	serve c1 80
	reachable_again
	CNI_PATH=${GO_PLUGIN%/*} CAP_ARGS=$caps by "$GO" del n /run/netns/c1
	same "host port" '' "$(knock host tcp 10.9.0.1 8080)"
	no_entry
}

# twice ARG...: the same call by both with clean caches; what they leave and print is compared.
twice() {
	by "$GO" "$@"
	local printed=$output
	host sh -c 'cat "$1"' sh "$(entry)" >"$T/go.entry"
	basename "$(entry)" >"$T/go.name"
	host rm -r /var/lib/cni/results
	by "$OURS" "$@"
	same "what add prints" "$printed" "$output"
	same "name of the entry" "$(cat "$T/go.name")" "$(basename "$(entry)")"
	same "bytes of the entry" "$(cat "$T/go.entry")" "$(host cat "$(entry)")"
	host rm -r /var/lib/cni/results
}

@test "the cache entry is the same, byte for byte" {
	double a b
	list n 'a {"type":"b","capabilities":{"k":true}}'
	twice add n /var/run/netns/blue
	CNI_IFNAME=net1 CNI_ARGS='Z=1;A=2;Z=3' CAP_ARGS='{"z":{"b":1,"a":[]},"k":"<&>","a":null}' \
		twice add n /x
	echo '{"name":"s","cniVersion":"0.4.0","type":"a","z":1,"b":"<é>"}' >"$NET/s.conf"
	cat >"$T/a.result" <<-'END'
		{"cniVersion":"0.4.0","interfaces":[{"name":"eth0","mac":"00:11:22:33:44:55","sandbox":"/x"}],
		"ips":[{"version":"4","address":"10.1.0.2/16","gateway":"10.1.0.1","interface":0},
		{"version":"6","address":"fd00::2/64"}],"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0","gw":"fd00::1"}],
		"dns":{"nameservers":["10.1.0.1"],"domain":"x","search":["a","b"],"options":["o"]}}
	END
	twice add s /x
	list o a '"cniVersion": "0.4.0"'
	twice add o /x
	echo '{"cniVersion":"0.2.0","ip4":{"ip":"10.1.0.2/16","routes":[{"dst":"0.0.0.0/0"}]}}' >"$T/a.result"
	list p a '"cniVersion": "0.2.0"'
	twice add p /x
	cat >"$T/a.result" <<-'END'
		{"cniVersion":"1.1.0","interfaces":[{"name":"eth0","mtu":1400,"socketPath":"/s","pciID":"0000:00:1f.6"}],
		"ips":[{"address":"fd00::2/64","interface":0}],
		"routes":[{"dst":"10.0.0.0/8","gw":"10.1.0.1","mtu":1400,"advmss":1360,"priority":7,"table":0,"scope":253}]}
	END
	list q a '"cniVersion": "1.1.0"'
	twice add q /x
}

# alike ARG...: the same call by both; exit status, stdout and the last line of stderr are compared,
# and what the plugins were given.
alike() {
	local s o e c
	CNITOOL=$GO tool "$@"
	s=$status o=$output e=${stderr##*$'\n'} c=$(paste -sd, "$T/calls" 2>/dev/null || :)
	rm -f "$T/calls"
	CNITOOL=$OURS tool "$@"
	same "status of $*" "$s" "$status"
	same "stdout of $*" "$o" "$output"
	same "stderr of $*" "$e" "${stderr##*$'\n'}"
	[ "${any_calls:-}" ] || same "calls of $*" "$c" "$(paste -sd, "$T/calls" 2>/dev/null || :)"
	rm -f "$T/calls"
}

@test "same output, errors and calls in a hundred situations" {
	local v cmd any_calls
	double a b
	# Without a label the list's version counts.
	echo '{"interfaces":[{"name":"x"}]}' | tee "$T/a.result" >"$T/b.result"
	alike add n /x
	for v in 0.3.1 0.4.0 1.0.0 1.1.0; do
		list n 'a b' "\"cniVersion\": \"$v\""
		alike add n /x
		for cmd in check status del gc; do
			alike $cmd n /x
		done
		list n 'a b' "\"cniVersion\": \"$v\"" '"disableCheck": "true"' '"disableGC": true'
		for cmd in check status del gc; do
			alike $cmd n /x
		done
		refuses b CHECK 101 'not so'
		refuses b STATUS 50 'not ready'
		refuses a DEL 5 'a stays'
		refuses b GC 5 'no broom'
		list n 'a b' "\"cniVersion\": \"$v\""
		for cmd in check status del; do
			alike $cmd n /x
		done
		rm -f "$T"/*.does
	done
	list n 'a b'
	any_calls=1 # a failing ADD of ours is followed by DEL
	refuses b ADD 42 'b is busy'
	alike add n /x
	does b ADD 'echo "{\"code\":7,\"msg\":\"m\",\"details\":\"d\"}"; exit 1'
	alike add n /x
	does b ADD 'exit 3'
	alike add n /x
	does b ADD 'kill -KILL $$'
	alike add n /x
	rm "$T/b.ADD.does"
	list n 'a nosuch'
	for cmd in add check; do
		alike $cmd n /x
	done
	list n 'a {"type":"b","name":"own"} {"type":"../x"}'
	alike add n /x
	for v in 'A=' 'A' 'A=1;' 'A=b=c' ';' '='; do
		CNI_ARGS=$v alike add n /x
	done
	CNI_PATH='' alike add n /x
	NETCONFPATH=/nowhere alike add n /x
	alike add other /x
	list n a '"cniVersion": "x"'
	for cmd in check del; do
		alike $cmd n /x
	done
}

@test "gc of either collects what the other added" {
	double a
	list n a '"cniVersion": "1.1.0"'
	list m a '"cniVersion": "1.1.0"'
	by "$OURS" add n /x
	by "$GO" add n /y
	by "$OURS" add m /x
	by "$GO" gc n /z
	same "left by the Go tool" m "$(host sh -c 'cat /var/lib/cni/results/*' | jq -r .networkName)"
	by "$GO" add n /x
	by "$OURS" add n /y
	by "$OURS" gc n --valid "$(jq -r .containerId < <(host sh -c 'cat /var/lib/cni/results/m-*'))/eth0"
	same "left by ours" 'm /x,n /x' \
		"$(host sh -c 'cat /var/lib/cni/results/*' | jq -r '"\(.networkName) \(.netns)"' | sort | paste -sd,)"
	by "$OURS" gc n --all
	by "$OURS" gc m --all
	no_entry
}

@test "an attempt that ours left on record is deleted by the Go tool" {
	double a
	list n a
	does a ADD 'kill -9 $PPID'
	tool add n /x
	cached 'has("result")' false
	by "$GO" check n /x
	by "$GO" del n /x
	no_entry
}

@test "args and capability args the Go tool cached are used by our DEL" {
	double a
	list n '{"type":"a","capabilities":{"k":true}}'
	CNI_ARGS='B=1;A=2' CAP_ARGS='{"k":{"x":[1,2]}}' by "$GO" add n /x
	rm "$NET/n.conflist"
	by "$OURS" del n /x
	same CNI_ARGS 'B=1;A=2' "$(env_of a DEL CNI_ARGS)"
	given a DEL .runtimeConfig '{"k":{"x":[1,2]}}'
	given a DEL .prevResult '{"cniVersion":"1.0.0","interfaces":[{"name":"a"}]}'
	no_entry
}
