# cnitool: the command line and what it prints.

load helpers
load cnitool

setup() { sandbox && tool_setup; }
teardown() { sandbox_end; }

# ---- the command line -------------------------------------------------------------------------

@test "no argument and --help print the help on stdout" {
	only_ours "v1.3.0 prints its usage and fails"
	for args in '' --help '-h' 'add --help' 'add n --help'; do
		works $args
		[[ $output == *Usage:*add*del*check*gc*status*version*--conf-dir*NETCONFPATH* ]] || show "$args"
		same "stderr of $args" '' "$stderr"
	done
}

@test "too few arguments, unknown commands and options: exit 1, told on stderr, nothing is run" {
	only_ours "v1.3.0 prints its usage"
	double a
	list n a
	for args in add 'add n' del 'del n' check 'check n' gc status version 'gc n' 'frob n /x' '--frob add n /x' \
		'add n /x --ifname' 'add n /x --timeout soon' 'add n /x --timeout -1' \
		'gc n --all --valid a/b'; do
		tool $args
		same "status of $args" 1 "$status"
		same "stdout of $args" '' "$output"
		[[ $stderr == *cnitool* ]] || show "$args"
	done
	called ''
}

@test "extra arguments are ignored" {
	double a
	list n a
	works add n /x more and more
	called 'ADD a'
}

@test "the plugin gets all six variables, and the rest of the environment as it is" {
	double a
	list n a
	CNI_COMMAND=no CNI_CONTAINERID=no CNI_NETNS=no OTHER='o t=h' works add n /var/run/netns/blue
	same CNI_COMMAND ADD "$(env_of a ADD CNI_COMMAND)"
	same CNI_NETNS /var/run/netns/blue "$(env_of a ADD CNI_NETNS)"
	same CNI_IFNAME eth0 "$(env_of a ADD CNI_IFNAME)"
	same CNI_ARGS '' "$(env_of a ADD CNI_ARGS)"
	same CNI_PATH "$BIN:$CNI_PLUGIN_DIR" "$(env_of a ADD CNI_PATH)"
	same OTHER 'o t=h' "$(env_of a ADD OTHER)"
	same "how often" 6 "$(grep -c '^CNI_[A-Z]*=' <(grep -v PLUGIN_DIR "$T/a.ADD.env"))"
}

@test "the container ID is cnitool- and ten bytes of the SHA-512 of the path" {
	double a
	list n a
	works add n /var/run/netns/blue
	same ID cnitool-296747069b8a02dc4e2a "$(env_of a ADD CNI_CONTAINERID)"
	works add n /run/netns/blue
	same "the ID of another spelling" "cnitool-$(printf /run/netns/blue | sha512sum | cut -c1-20)" \
		"$(env_of a ADD CNI_CONTAINERID)"
}

@test "the path is made absolute and cleaned by its text alone" {
	local want=/var/run/netns/blue p
	double a
	list n a
	host mkdir -p /run/elsewhere/deep
	host ln -s /run/elsewhere/deep /run/link
	for p in /var/run//netns/blue //var/./run/netns/blue/ /var/x/../run/netns/y/../blue \
		/../../var/run/netns/blue /var/run/netns/./blue/.; do
		works add n "$p"
		same "$p" $want "$(env_of a ADD CNI_NETNS)"
		same "ID of $p" cnitool-296747069b8a02dc4e2a "$(env_of a ADD CNI_CONTAINERID)"
		works del n "$p"
	done
	works add n /run/link/../blue
	same "no look at symlinks" /run/blue "$(env_of a ADD CNI_NETNS)"
	works add n /..
	same "no further than the root" / "$(env_of a ADD CNI_NETNS)"
	for p in blue ./blue ../netns/blue netns/../blue; do
		NETCONFPATH=$NET CNI_PATH=$BIN host env -C /var/run/netns "$CNITOOL" add n "$p"
		same "$p from /run/netns" /run/netns/blue "$(env_of a ADD CNI_NETNS)"
	done
}

@test "ifname: eth0, or CNI_IFNAME, or -i and --ifname wherever they stand" {
	double a
	list n a
	works add n /x
	same default eth0 "$(env_of a ADD CNI_IFNAME)"
	CNI_IFNAME=net1 works add n /x
	same CNI_IFNAME net1 "$(env_of a ADD CNI_IFNAME)"
	CNI_IFNAME=a/b tool add n /x
	same "status of a/b" 1 "$status"
	only_ours "v1.3.0 has no options"
	CNI_IFNAME='' works add n /x
	same "empty is unset" eth0 "$(env_of a ADD CNI_IFNAME)"
	for args in '-i net2 add n /x' 'add -i net2 n /x' 'add n -inet2 /x' 'add n /x -i net2' \
		'add n /x --ifname net2' '--ifname=net2 add n /x'; do
		CNI_IFNAME=net1 works $args
		same "$args" net2 "$(env_of a ADD CNI_IFNAME)"
		CNI_IFNAME=net2 works del n /x
	done
	called "$(yes 'ADD a,DEL a' | head -6 | paste -sd, | sed 's/^/ADD a,ADD a,ADD a,/')"
	for bad in a/b abcdefghijklmnop . .. 'a b' a:b; do
		tool add n /x -i "$bad"
		same "status of $bad" 1 "$status"
	done
	called ''
}

@test "CNI_ARGS: pairs with one = and both sides, passed on; anything else is refused" {
	double a
	list n a
	CNI_ARGS='IgnoreUnknown=1;K8S_POD_NAME=x' works add n /x
	same CNI_ARGS 'IgnoreUnknown=1;K8S_POD_NAME=x' "$(env_of a ADD CNI_ARGS)"
	called 'ADD a'
	CNI_ARGS='A=' dies 'invalid CNI_ARGS pair "A="' add n /x
	CNI_ARGS='A=1;' dies 'invalid CNI_ARGS pair ""' add n /x
	CNI_ARGS='A' dies 'invalid CNI_ARGS pair "A"' add n /x
	CNI_ARGS='=1' dies 'invalid CNI_ARGS pair "=1"' add n /x
	CNI_ARGS='B=2;A=1=2' dies 'invalid CNI_ARGS pair "A=1=2"' add n /x
	called ''
}

@test "CAP_ARGS: a JSON object; anything else is refused before a plugin runs" {
	double a
	list n a
	for bad in '{' '[]' '"x"' '7' '{"a":1} {"b":2}'; do
		CAP_ARGS=$bad tool add n /x
		same "status of $bad" 1 "$status"
		same "stdout of $bad" '' "$output"
	done
	called ''
	for good in '{}' null ''; do
		CAP_ARGS=$good works add n /x
		given a ADD 'has("runtimeConfig")' false
		cached 'has("capabilityArgs")' false
	done
}

@test "no CNI_PATH: no paths provided" {
	double a
	list n a
	CNI_PATH='' dies 'plugin type="a" failed (add): no paths provided' add n /x
}

@test "NETCONFPATH, unset or empty, is /etc/cni/net.d; it may be relative" {
	double a
	list n a
	host sh -c "cp $NET/n.conflist /etc/cni/net.d/10-other.conflist &&
		sed -i 's/\"n\"/\"etc\"/' /etc/cni/net.d/10-other.conflist"
	NETCONFPATH='' works add etc /x
	CNI_PATH=$BIN host "$CNITOOL" add etc /y
	CNI_PATH=$BIN NETCONFPATH=net.d host env -C "$T" "$CNITOOL" add n /x
	called 'ADD a,ADD a,ADD a'
}

@test "long options stand for the variables and win over them" {
	only_ours "v1.3.0 has no options"
	double a
	list n '{"type":"a","capabilities":{"k":true}}'
	export NETCONFPATH=/nowhere CNI_PATH=/nowhere CNI_ARGS=A=env CAP_ARGS='{"k":"env"}' CNI_IFNAME=env0
	works add --conf-dir "$NET" --cni-path "$BIN" --args 'A=opt;B=2' --cap-args '{"k":"opt"}' \
		--ifname opt0 --cache-dir "$T/cache" --id my.id n /x --timeout 20
	same CNI_PATH "$BIN" "$(env_of a ADD CNI_PATH)"
	same CNI_ARGS 'A=opt;B=2' "$(env_of a ADD CNI_ARGS)"
	same CNI_IFNAME opt0 "$(env_of a ADD CNI_IFNAME)"
	same CNI_CONTAINERID my.id "$(env_of a ADD CNI_CONTAINERID)"
	given a ADD .runtimeConfig '{"k":"opt"}'
	[ -e "$T/cache/results/n-my.id-opt0" ]
	no_entry
	unset NETCONFPATH CNI_PATH CNI_ARGS CAP_ARGS CNI_IFNAME
	works del --conf-dir="$NET" --cni-path="$BIN" --ifname=opt0 --cache-dir="$T/cache" --id=my.id n /x
	same "args of DEL, from the cache" 'A=opt;B=2' "$(env_of a DEL CNI_ARGS)"
	same "cache" '' "$(ls "$T/cache/results")"
	for bad in 'a/b' '.x' '' 'a b'; do
		tool add n /x --id "$bad"
		same "status of --id '$bad'" 1 "$status"
	done
}

# ---- output -----------------------------------------------------------------------------------

@test "add prints the result with four spaces and no newline, the others nothing" {
	double a
	refuses a STATUS
	list n a '"cniVersion": "1.1.0"'
	printf '%s' '{"ips":[{"address":"10.1.0.2/16"}],"cniVersion":"1.1.0"}' >"$T/a.result"
	works add n /x
	same stdout '{
    "cniVersion": "1.1.0",
    "ips": [
        {
            "address": "10.1.0.2/16"
        }
    ]
}' "$(cat "$T/stdout")"
	same "last byte" '}' "$(tail -c 1 "$T/stdout")"
	silent check n /x
	silent del n /x
	silent gc n /x
	does a STATUS :
	silent status n /x
}

@test "a failure: exit 1, nothing on stdout, the plugin's message wrapped on the last line of stderr" {
	double a
	list n a
	refuses a ADD 42 'went wrong'
	dies 'plugin type="a" failed (add): went wrong' add n /x
	does a ADD 'echo noise >&2; echo "{\"code\":7,\"msg\":\"m\",\"details\":\"d\"}"; exit 1'
	dies 'plugin type="a" failed (add): m; d' add n /x
	list n '{"type":"a","name":"own"}'
	dies 'plugin type="a" name="own" failed (add): m; d' add n /x
	refuses a DEL 5 'cannot'
	dies 'plugin type="a" name="own" failed (delete): cannot' del n /x
	refuses a CHECK 101 'not so'
	dies 'not so' check n /x
	list n a '"cniVersion": "1.1.0"'
	refuses a STATUS 50 'not ready'
	dies 'not ready' status n /x
	refuses a GC 5 'no gc'
	host rm -rf /var/lib/cni/results
	dies 'failed to GC plugin a: no gc' gc n /x
}

@test "on a terminal the error says what failed, and its code" {
	only_ours "v1.3.0 does not look"
	command -v script >/dev/null || skip "no script(1)"
	double a
	list n a
	does a ADD 'echo "{\"code\":42,\"msg\":\"m\",\"details\":\"d\"}"; exit 1'
	NETCONFPATH=$NET CNI_PATH=$BIN run host script -qec "'$CNITOOL' add n /x" /dev/null </dev/null
	same status 1 "$status"
	same text 'cnitool: add n failed: plugin type="a" failed (add): m
  details: d
  code:    42' "${output//$'\r'/}"
}

@test "stderr of a plugin comes through, of a failing one too" {
	double a
	list n a
	does a ADD 'echo one >&2; echo two >&2'
	works add n /x
	same stderr $'one\ntwo' "$stderr"
	only_ours "libcni drops it where stdout has an error"
	does a ADD 'echo one >&2; echo "{\"code\":7,\"msg\":\"m\"}"; exit 1'
	tool add n /x
	same stderr $'one\nplugin type="a" failed (add): m' "$stderr"
}

@test "a result that cannot be printed is an error, and the ADD is undone" {
	only_ours "the Go tool does not look"
	double a b
	list n 'a b'
	NETCONFPATH=$NET CNI_PATH=$BIN run host sh -c "'$CNITOOL' add n /x >/dev/full"
	same status 1 "$status"
	[[ $output == *'standard output'* ]]
	called 'ADD a,ADD b,DEL b,DEL a'
	no_entry
	NETCONFPATH=$NET CNI_PATH=$BIN run host sh -c "'$CNITOOL' add n /x >&-"
	same "status without a stdout" 1 "$status"
	called 'ADD a,ADD b,DEL b,DEL a'
	no_entry
}
