# Others' plugins, and a standard output that takes nothing. See hostile.bats.

load hostile

# ---- output -----------------------------------------------------------------------------------

@test "standard output closed, full, or gone: an error, and nothing stays" {
	local p how before
	host ip link add cni0 type bridge
	ok ADD bridge c1 <<<"$(conf bridge)"
	PREV=$output
	for p in tuning portmap bandwidth; do
		before=$(state | grep -v '^/run/cni\|^/run/cnibox')
		for how in '>&-' '>/dev/full' '| true'; do
			status=0
			CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 CNI_PATH=$CNI_PLUGIN_DIR \
				timeout 60 nsenter -t "$HOLDER" -m -n -- bash -c "set -o pipefail; { \"$CNI_PLUGIN_DIR/$p\" $how; } 3>&-" \
				<<<"$(conf $p)" >"$T/stdout" 2>"$T/stderr" || status=$?
			taken
			case $how in '|'*) continue ;; esac
			[ "$status" = 1 ] || show "ADD $p $how should exit with 1"
			same "state after ADD $p $how" "$before" "$(state | grep -v '^/run/cni\|^/run/cnibox')"
		done
		cni DEL $p c1 <<<"$(conf $p)"
	done
}

# ---- others' plugins, and the runtime's side --------------------------------------------------

@test "a plugin in the list that prints rubbish, megabytes, nothing, two documents, or never ends" {
	need_applet cnitool
	local does
	host sh -c 'cat >/etc/cni/net.d/net.conflist' <<<"{\"cniVersion\":\"1.1.0\",\"name\":\"net\",\"plugins\":[{$BR,\"ipam\":$IPAM},{\"type\":\"other\"}]}"
	for does in 'echo rubbish' 'head -c 100000000 /dev/zero' 'yes' : 'echo "{}{}"' 'echo "{\"cniVersion\":\"1.1.0\"} x"' 'echo "[]"' \
		'kill -9 $$' 'kill -SEGV $$' 'exit 3' 'echo "{\"code\":7}"; exit 1' 'echo "{\"code\":\"x\",\"msg\":[]}"; exit 1' \
		'yes >&2' 'sleep 100' 'sleep 100 & exit 1' 'trap "" TERM INT; while :; do sleep 1; done' 'exec >&- 2>&-; sleep 100' \
		'head -c 2000000 /dev/zero | tr "\0" "["' 'printf "\377\376{}"' 'cat; exit 1' 'echo "{\"cniVersion\":\"7.7\"}"' \
		'echo "{\"cniVersion\":\"1.1.0\",\"ips\":[{\"address\":\"x\"}]}"'; do
		other "[ \"\$CNI_COMMAND\" = ADD ] || exit 0
$does"
		tool_fails add --timeout 1 net /run/netns/c1
		nothing_left cni0
		same "cache after: $does" '' "$(host sh -c 'ls /var/lib/cni/results 2>/dev/null')"
	done
}

@test "a plugin that does so when it is to delete, too" {
	need_applet cnitool
	local does
	host sh -c 'cat >/etc/cni/net.d/net.conflist' <<<"{\"cniVersion\":\"1.1.0\",\"name\":\"net\",\"plugins\":[{$BR,\"ipam\":$IPAM},{\"type\":\"other\"}]}"
	for does in 'echo rubbish; exit 1' 'head -c 100000000 /dev/zero' 'kill -9 $$' 'exit 3' 'sleep 100'; do
		other 'cat >/dev/null; [ $CNI_COMMAND != ADD ] || echo "{\"cniVersion\":\"1.1.0\"}"'
		tool add net /run/netns/c1
		[ "$status" = 0 ] || show "add"
		other "$does"
		tool_fails del --timeout 1 net /run/netns/c1
		# All the others have done their part; the entry stays until the last has.
		nothing_left cni0
		other :
		tool del net /run/netns/c1
		[ "$status" = 0 ] || show "second del"
		same "cache after: $does" '' "$(host sh -c 'ls /var/lib/cni/results')"
	done
}

@test "a plugin that has ended is done, whatever it left behind, and one that is late is ended" {
	need_applet cnitool
	local start
	printf '{"cniVersion":"1.1.0","name":"net","plugins":[{"type":"other","pad":"%0300000d"}]}' 0 | host sh -c 'cat >/etc/cni/net.d/net.conflist'
	# It holds its standard error open, and talks.
	other 'cat >/dev/null; { for i in $(seq 1200); do echo tick >&2; sleep 0.05; done; } >/dev/null &
echo "{\"cniVersion\":\"1.1.0\"}"'
	start=$SECONDS
	tool add net /run/netns/c1
	[ "$status" = 0 ] && [ $((SECONDS - start)) -lt 40 ] || show "add, after $((SECONDS - start)) s"
	# It waits for the rest of its standard input.
	other 'exec >&- 2>&-; sleep 0.3; cat >/dev/null'
	tool del net /run/netns/c1
	[ "$status" = 0 ] || show "del"
	# It has left its process group.
	command -v perl >/dev/null || skip "no perl for the rest"
	other 'cat >/dev/null; [ "$CNI_COMMAND" = ADD ] || exit 0; exec perl -e "setpgrp(0, getpgrp(getppid())); sleep 100"'
	start=$SECONDS
	tool_fails add --timeout 1 net /run/netns/c1
	[ $((SECONDS - start)) -lt 40 ] || show "ended after $((SECONDS - start)) s"
}

@test "a result that the cache could not give back, and codes beyond all bounds" {
	need_applet cnitool
	local does code
	host sh -c 'cat >/etc/cni/net.d/net.conflist' <<<'{"cniVersion":"1.1.0","name":"net","plugins":[{"type":"other"}]}'
	for does in 'printf "{\"cniVersion\":\"1.1.0\",\"x\":"; printf "[%.0s" $(seq 9999); printf "]%.0s" $(seq 9999); echo "}"' \
		'printf "{\"cniVersion\":\"1.1.0\",\"x\":\""; head -c 16777100 /dev/zero | tr "\0" y; echo "\"}"'; do
		other "cat >/dev/null; echo \$CNI_COMMAND >>$T/log; [ \"\$CNI_COMMAND\" = ADD ] || exit 0
$does"
		: >"$T/log"
		tool_fails add net /run/netns/c1
		same "calls" "ADD DEL" "$(tail -n 2 "$T/log" | xargs)"
		same "cache" '' "$(host sh -c 'ls /var/lib/cni/results 2>/dev/null')"
	done
	for code in 4294967296 -1 0 9007199254740993; do
		other "echo '{\"code\":$code,\"msg\":\"no\"}'; exit 1"
		CNI_PATH=$T/bin:$CNI_PLUGIN_DIR fails 999 no ADD bridge c1 <<<"{$BR,\"ipam\":{\"type\":\"other\"}}"
	done
	nothing_left
}
