# cnitool: finding and running plugins, and lists of several implementations.

load helpers
load cnitool

setup() { sandbox && tool_setup; }
teardown() { sandbox_end; }

# ---- finding and running plugins --------------------------------------------------------------

@test "CNI_PATH: the first directory that has the plugin as a regular file" {
	double a
	mkdir -p "$T"/{1/a,2,3}
	list n a
	ln -s gone "$T/2/a"
	ln -s ../bin/a "$T/3/a"
	CNI_PATH=/nowhere:$T/1:$T/2:$T/3:$BIN works add n /x
	same "the one that ran" "a" "$(sed -n 's/ADD //p' "$T/calls")"
	CNI_PATH=$T/1:$T/2 dies "plugin type=\"a\" failed (add): failed to find plugin \"a\" in path [$T/1 $T/2]" add n /y
	list n ../bin/a
	CNI_PATH=$T/1 dies 'plugin type="../bin/a" failed (add): invalid plugin name: ../bin/a' add n /y
}

@test "CNI_PATH: what cannot be executed is passed over, an empty element is not the current directory" {
	only_ours "libcni takes both"
	double a
	mkdir "$T/dead"
	echo 'no program' >"$T/dead/a"
	list n a
	CNI_PATH=$T/dead:$BIN works add n /x
	called 'ADD a'
	CNI_PATH=$T/dead tool add n /y
	same "status where there is no other" 1 "$status"
	says "fork/exec $T/dead/a: permission denied|Permission denied"
	for path in : "/nowhere:" ":/nowhere" "/nowhere::/nowhere"; do
		status=0
		NETCONFPATH=$NET CNI_PATH=$path host env -C "$BIN" "$CNITOOL" add n /y 2>"$T/stderr" || status=$?
		same "status of $path" 1 "$status"
	done
	CNI_PATH=:$BIN: works add n /y
	called 'ADD a'
}

@test "plugins that end badly become errors with libcni's words" {
	double a
	list n a
	does a ADD 'exit 3'
	dies 'plugin type="a" failed (add): netplugin failed with no error message: exit status 3' add n /x
	does a ADD 'kill -KILL $$'
	dies 'plugin type="a" failed (add): netplugin failed with no error message: signal: killed' add n /x
	does a ADD 'kill -SEGV $$'
	tool add n /x
	same status 1 "$status"
	says 'failed \(add\): netplugin failed with no error message: signal: segmentation fault'
	does a ADD 'echo "oh dear" >&2; exit 1'
	tool add n /x
	same status 1 "$status"
	says 'failed \(add\): netplugin failed: "oh dear\\n"'
	does a ADD 'echo "<html>"; exit 1'
	tool add n /x
	same status 1 "$status"
	says 'failed \(add\): netplugin failed but error parsing its diagnostic message'
	printf '\177ELF rubbish' >"$BIN/a"
	tool add n /x
	same status 1 "$status"
	says 'netplugin failed with no error message: fork/exec '"$BIN/a"'.*[Ee]xec format error'
}

@test "an ADD that prints no result, or not exactly one, is an error and is undone" {
	only_ours "libcni takes some of it for a result"
	double a
	list n a
	for bad in '' ' ' '{' '[]' '"x"' 7 '{"cniVersion":"1.0.0"}{"cniVersion":"1.0.0"}' \
		'{"cniVersion":"1.0.0"} x' '{"cniVersion":"9.9.9"}' '{"ips":[{"address":"nonsense"}]}' \
		'{"ips":[null]}' '{"ips":{}}' '{"ips":[{}]}' '{"code":11,"msg":"try later"}' '{"code":11}' \
		'{"cniVersion":"1.0.0","code":11,"msg":"","details":"d"}' '<html>'; do
		printf '%s' "$bad" >"$T/a.result"
		tool add n /x
		same "status of $bad" 1 "$status"
		same "stdout of $bad" '' "$output"
		says 'plugin type="a" failed \(add\): '
		called 'ADD a,DEL a'
		no_entry
	done
	printf '{"cniVersion":"1.0.0","interfaces":[{"name":"a\0b"}]}' >"$T/a.result"
	tool add n /x
	same "status of a NUL" 1 "$status"
	printf '{"cniVersion":"1.0.0","dns":{"domain":"\377"}}' >"$T/a.result"
	works add n /x
	is .dns.domain '"\ufffd"'
	printf null >"$T/a.result"
	works add n /y
	is . '{"cniVersion":"1.0.0"}'
}

@test "megabytes: a big result is taken, a flood is stopped, noise on stderr is let through" {
	only_ours "libcni keeps all of it in memory"
	double a
	list n a
	does a ADD 'head -c 3000000 /dev/zero | tr "\0" " "; head -c 3000000 /dev/zero | tr "\0" "x" >&2'
	works add n /x
	is .interfaces '[{"name":"a"}]'
	same "bytes on stderr" 3000000 "$(stat -c %s "$T/stderr")"
	does a ADD 'yes "[[[[[[[[[[[[[[[[[[[[[[[[["'
	tool add n /y
	same status 1 "$status"
	says 'printed more than 16777216 bytes'
	does a ADD 'head -c 10000000 /dev/zero | tr "\0" "["; exit 1'
	tool add n /y
	same status 1 "$status"
	does a ADD 'yes | head -c 3000000 >&2; exit 1'
	tool add n /y
	same status 1 "$status"
}

@test "a plugin need not read its stdin, however long that is" {
	double a
	: >"$T/a.ADD.deaf"
	printf '{"name":"n","cniVersion":"1.0.0","plugins":[{"type":"a","x":"%s"}]}' \
		"$(head -c 1000000 /dev/zero | tr '\0' x)" >"$NET/n.conflist"
	works add n /x
	rm "$T/a.ADD.deaf"
	works add n /y
	given a ADD '.x | length' 1000000
}

@test "a daemon that a plugin leaves behind with its stdout does not hold up the call" {
	only_ours "libcni waits for it"
	double a
	list n a
	does a ADD 'sleep 600 & echo $! >'"$T/daemon"
	CALL_TIMEOUT=20 works add n /x
	is .interfaces '[{"name":"a"}]'
	kill -0 "$(cat "$T/daemon")"
	kill "$(cat "$T/daemon")"
}

@test "--timeout: what hangs is killed with its children, and the clean-up runs" {
	only_ours "v1.3.0 waits for ever"
	double a b
	list n 'a b'
	does b ADD "sleep 600 & echo \$! >$T/child; echo \$\$ >$T/pid; trap '' TERM INT; wait; sleep 600"
	CALL_TIMEOUT=20 dies 'plugin type="b" failed (add): plugin "b" did not finish within 300 ms and was killed' \
		add n /x --timeout 0.3
	called 'ADD a,ADD b,DEL b,DEL a'
	no_entry
	for f in child pid; do
		wait_for 60 sh -c "! kill -0 $(cat "$T/$f") 2>/dev/null || grep -q '^State:.Z' /proc/$(cat "$T/$f")/status"
	done
	# Deaf and mute, and one that is busy writing.
	does b ADD 'exec <&- >&- 2>&-; sleep 600'
	CALL_TIMEOUT=20 tool add n /x --timeout 0.3
	same "status of a mute one" 1 "$status"
	does b ADD 'while :; do echo x >&2; done'
	CALL_TIMEOUT=20 tool add n /x --timeout 0.3
	same "status of a busy one" 1 "$status"
	CALL_TIMEOUT=20 tool add n /x --timeout 0.0001
	same "status of a very short one" 1 "$status"
	does b ADD :
	works add n /x --timeout 30
	rm "$T/calls"
	does b DEL 'sleep 600'
	CALL_TIMEOUT=20 tool del n /x --timeout 0.3
	same "status of DEL" 1 "$status"
	called 'DEL b,DEL a'
	[ -n "$(entry n-)" ]
}

@test "a caller that ignores SIGCHLD does not turn failures into successes" {
	double a
	list n a
	refuses a ADD 11 'no'
	env --ignore-signal=CHLD true 2>/dev/null || skip "env(1) has no --ignore-signal"
	export NETCONFPATH=$NET CNI_PATH=$BIN
	run host env --ignore-signal=CHLD "$CNITOOL" add n /x
	same status 1 "$status"
	[[ $output == *'failed (add): no' ]]
	does a ADD :
	run host env --ignore-signal=CHLD "$CNITOOL" add n /x
	same "status of a good one" 0 "$status"
}

@test "a plugin that is being replaced is waited for" {
	only_ours "libcni fails at the second try"
	command -v cc >/dev/null || skip "no C compiler"
	echo 'int main(void){return __builtin_puts("{\"cniVersion\":\"1.0.0\"}") < 0;}' >"$T/a.c"
	cc -o "$BIN/a" "$T/a.c"
	list n a
	spawn host sh -c "exec 7>>$BIN/a; : >$T/open; until [ -e $T/close ]; do sleep 0.02; done"
	wait_for 60 test -e "$T/open"
	! "$BIN/a" >/dev/null 2>&1 || skip "this kernel executes files that are open for writing"
	export NETCONFPATH=$NET CNI_PATH=$BIN
	spawn host sh -c "'$CNITOOL' add n /x >$T/late.out 2>&1; echo \$? >$T/late"
	wait_for 60 test -e "$T/late.out"
	run wait_for 1 test -s "$T/late"
	same "finished while it was busy" 1 "$status"
	: >"$T/close"
	wait_for 60 test -s "$T/late"
	same status 0 "$(cat "$T/late")"
}

# ---- mixed lists ------------------------------------------------------------------------------

@test "our plugins run in the process, others are executed; a copy is another file" {
	only_ours "only cnibox is both"
	is_cnibox || skip "not cnibox"
	need_applet loopback tuning
	double a
	netns c1
	list n 'a loopback {"type":"tuning","sysctl":{"net.core.somaxconn":"501"}} a'
	echo '{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"/run/netns/c1"}]}' >"$T/a.result"
	inside c1 ip link add eth0 type veth peer name other
	CNIBOX_TRACE=$T/trace works add n /run/netns/c1
	same "somaxconn" 501 "$(inside c1 cat /proc/sys/net/core/somaxconn)"
	same "executed" "exec $BIN/a ADD,exec $BIN/a ADD" "$(grep -o 'exec .* ADD' "$T/trace" | paste -sd,)"
	CNIBOX_TRACE=$T/trace2 works check n /run/netns/c1
	CNIBOX_TRACE=$T/trace3 works del n /run/netns/c1
	same "executed by DEL" "exec $BIN/a DEL,exec $BIN/a DEL" "$(grep -o 'exec .* DEL' "$T/trace3" | paste -sd,)"
	mkdir "$T/copy"
	cp "$(readlink -f "$CNITOOL")" "$T/copy/tuning"
	CNIBOX_TRACE=$T/trace4 CNI_PATH=$BIN:$T/copy:$CNI_PLUGIN_DIR works add n /run/netns/c1
	same "executed" "exec $BIN/a ADD,exec $T/copy/tuning ADD,exec $BIN/a ADD" \
		"$(grep -o 'exec .* ADD' "$T/trace4" | paste -sd,)"
	CNI_PATH=$BIN:$T/copy:$CNI_PLUGIN_DIR works del n /run/netns/c1
}

# mixed PATH: bridge, a third party's, tuning and portmap on CNI_PATH, with packets.
mixed() {
	netns c1
	netns c2
	list n '{"type":"bridge","bridge":"br0","isGateway":true,"ipMasq":true,"ipam":{"type":"host-local","subnet":"10.9.0.0/24"}} pass {"type":"tuning","capabilities":{"mac":true},"sysctl":{"net.core.somaxconn":"501"}} {"type":"portmap","capabilities":{"portMappings":true}} last'
	cat >"$BIN/pass" <<-EOS
		#!/bin/sh
		echo "\$CNI_COMMAND \${0##*/}" >>$T/calls
		[ "\$CNI_COMMAND" != ADD ] || exec jq .prevResult
	EOS
	chmod +x "$BIN/pass"
	cp "$BIN/pass" "$BIN/last"
	export CNI_PATH=$1
	CAP_ARGS='{"mac":"00:11:22:33:44:66","portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}' \
		works add n /run/netns/c1
	is '.interfaces[] | select(.sandbox) | .mac' 00:11:22:33:44:66
	works add n /run/netns/c2
	called 'ADD pass,ADD last,ADD pass,ADD last'
	serve c1 80
	same "c2 to c1" "c1 $(addr_of c2)" "$(ask c2 tcp "$(addr_of c1)" 80)"
	[[ $(ask host tcp 10.9.0.1 8080) == c1* ]]
	inside_is c1 '.[0].address' 00:11:22:33:44:66 ip -j link show eth0
	same "somaxconn" 501 "$(inside c1 cat /proc/sys/net/core/somaxconn)"
	works check n /run/netns/c2
	works del n /run/netns/c1
	works del n /run/netns/c2
	called 'CHECK pass,CHECK last,DEL last,DEL pass,DEL last,DEL pass'
	same "links" '["lo"]' "$(inside c1 ip -j link | jq -c '[.[].ifname]')"
	same "leases" '' "$(host sh -c 'ls /var/lib/cni/networks/n/10.* 2>/dev/null')"
	no_entry
}

addr_of() { inside "$1" ip -j -4 addr show eth0 | jq -r '.[0].addr_info[0].local'; }

@test "mixed: our plugins with a third party's in the middle and at the end" {
	need_applet bridge host-local tuning portmap
	mixed "$BIN:$CNI_PLUGIN_DIR"
	is_cnibox || return 0
	nothing_left br0
}

@test "mixed: tuning of the Go plugins between ours" {
	need_applet bridge host-local portmap
	go_plugin tuning
	mkdir "$T/go"
	cp "$GO_PLUGIN" "$T/go/tuning"
	mixed "$BIN:$T/go:$CNI_PLUGIN_DIR"
}

@test "mixed: bridge of the Go plugins, the rest ours" {
	need_applet host-local tuning portmap
	go_plugin bridge
	mkdir "$T/go"
	cp "$GO_PLUGIN" "$T/go/bridge"
	mixed "$BIN:$T/go:$CNI_PLUGIN_DIR"
}

@test "mixed: a third party's plugin first, as the one that makes the interface" {
	need_applet tuning
	netns c1
	cat >"$BIN/mine" <<-'EOS'
		#!/bin/sh
		case $CNI_COMMAND in
		ADD)
			ip -n c1 link add "$CNI_IFNAME" type veth peer name other >&2 &&
				ip -n c1 link set "$CNI_IFNAME" up >&2 || exit 1
			printf '{"cniVersion":"1.0.0","interfaces":[{"name":"%s","sandbox":"%s"}]}' "$CNI_IFNAME" "$CNI_NETNS" ;;
		DEL) ip -n c1 link del "$CNI_IFNAME" >&2 || : ;;
		esac
	EOS
	chmod +x "$BIN/mine"
	list n 'mine {"type":"tuning","mtu":1400}'
	works add n /run/netns/c1
	inside_is c1 '.[0].mtu' 1400 ip -j link show eth0
	works check n /run/netns/c1
	works del n /run/netns/c1
	same links '["lo"]' "$(inside c1 ip -j link | jq -c '[.[].ifname]')"
}

@test "when the chain fails late, what our plugins made is gone" {
	only_ours "libcni leaves that to its caller"
	need_applet bridge host-local tuning portmap
	is_cnibox || skip "not cnibox"
	double crash
	does crash ADD 'kill -SEGV $$'
	netns c1
	list n '{"type":"bridge","bridge":"br0","isGateway":true,"ipMasq":true,"ipam":{"type":"host-local","subnet":"10.9.0.0/24"}} {"type":"tuning","sysctl":{"net.core.somaxconn":"501"}} {"type":"portmap","capabilities":{"portMappings":true}} crash'
	CAP_ARGS='{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}' tool add n /run/netns/c1
	same status 1 "$status"
	says 'plugin type="crash" failed \(add\)'
	nothing_left br0
	no_entry
	same links '["lo"]' "$(inside c1 ip -j link | jq -c '[.[].ifname]')"
}

@test "many at once: each has its own address, and all go again" {
	need_applet bridge host-local
	local i
	list n '{"type":"bridge","bridge":"br0","isGateway":true,"ipam":{"type":"host-local","subnet":"10.9.0.0/24"}}'
	for i in {1..12}; do netns c$i; done
	export NETCONFPATH=$NET CNI_PATH=$CNI_PLUGIN_DIR
	host sh -c "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		'$CNITOOL' add n /run/netns/c\$i >$T/out.\$i 2>$T/err.\$i & done; wait"
	same addresses 12 "$(cat "$T"/out.* | jq -r '.ips[0].address' | sort -u | wc -l)"
	same entries 12 "$(entry n- | wc -l)"
	host sh -c "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		'$CNITOOL' del n /run/netns/c\$i & done; wait"
	nothing_left br0
	no_entry
}
