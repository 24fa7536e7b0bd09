# cnitool: the runtime's side. Plugins are doubles that record what they are given, unless the test
# says otherwise.

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

# ---- finding a configuration ------------------------------------------------------------------

@test "lists come first, in bytewise order of the files; then .conf and .json together" {
	double a b c d e
	conf() { printf '{"name":"%s","type":"%s","cniVersion":"1.0.0"}' "$2" "$3" >"$NET/$1"; }
	conf 10.json n a
	conf 05.conf n b
	works add n /x
	called 'ADD b'
	conf 04.json n c
	works add n /y
	called 'ADD c'
	list n d
	mv "$NET/n.conflist" "$NET/zz.conflist"
	works add n /z
	called 'ADD d'
	list n e
	mv "$NET/n.conflist" "$NET/Z.conflist"
	works add n /1
	called 'ADD e'
	list other a
	mv "$NET/other.conflist" "$NET/0.conflist"
	works add n /2
	called 'ADD e'
}

@test "names: hidden files count, directories do not, symlinks are followed, the extension is exact" {
	double a
	list n a
	mv "$NET/n.conflist" "$T/elsewhere"
	mkdir "$NET/dir.conflist" "$NET/dir.conf" "$NET/dir.json"
	for f in n.CONFLIST n.conflist~ n.conflist.bak conflist m; do
		cp "$T/elsewhere" "$NET/$f"
	done
	dies "no net configurations found in $NET" add n /x
	ln -s ../elsewhere "$NET/link.conflist"
	works add n /x
	rm "$NET/link.conflist"
	cp "$T/elsewhere" "$NET/.conflist"
	works add n /y
	called 'ADD a,ADD a'
}

@test "no such directory, an empty one, no such network" {
	dies "no net configurations found in $NET" add n /x
	NETCONFPATH=/nowhere dies 'no net configurations found in /nowhere' add n /x
	double a
	list other a
	dies "no net configuration with name \"n\" in $NET" add n /x
	for cmd in check del gc status; do
		dies "no net configuration with name \"n\" in $NET" $cmd n /x
	done
	called ''
}

@test "a broken file does not hide another network; it is named" {
	only_ours "libcni gives up at the first broken file"
	double a
	list n a
	mv "$NET/n.conflist" "$NET/50.conflist"
	echo '{"name": "other", "plugins": [' >"$NET/10-torn.conflist"
	: >"$NET/11-empty.conflist"
	echo '{"plugins": [{"type": "a"}]}' >"$NET/12-noname.conflist"
	ln -s gone "$NET/13-dangling.conflist"
	mkfifo "$NET/14-fifo.conflist"
	head -c 100000 /dev/urandom >"$NET/15-rubbish.conflist"
	printf '{"name":"s","type":"a","cniVersion":"1.0.0"}' >"$NET/50.conf"
	echo '[' >"$NET/10-torn.conf"
	works add n /x
	says 'skipped: .*10-torn.conflist'
	says 'skipped: .*13-dangling.conflist'
	[[ $stderr != *10-torn.conf:* ]]
	works add s /x
	says 'skipped: .*10-torn.conf:'
	tool add nosuch /x
	same status 1 "$status"
	same "last line" "no net configuration with name \"nosuch\" in $NET; broken files were skipped: 10-torn.conflist, 11-empty.conflist, 12-noname.conflist, 13-dangling.conflist, 15-rubbish.conflist, 10-torn.conf" \
		"${stderr##*$'\n'}"
}

@test "what is wrong with a list is said in libcni's words" {
	try() {
		printf '%s' "$1" >"$NET/n.conflist"
		tool add n /x
		same "status for $1" 1 "$status"
		[[ $stderr == *"${3-error parsing configuration list: }$2"* ]] || show "for $1 it should say $2"
	}
	try '{"plugins":[{"type":"a"}]}' 'no name'
	try '{"name":7,"plugins":[{"type":"a"}]}' 'invalid name type float64'
	try '{"name":null,"plugins":[{"type":"a"}]}' 'invalid name type <nil>'
	try '{"name":"n","cniVersion":{},"plugins":[{"type":"a"}]}' 'invalid cniVersion type map[string]interface {}'
	try '{"name":"n","plugins":{}}' "invalid 'plugins' type map[string]interface {}"
	try '{"name":"n","plugins":[]}' 'no plugins in list'
	try '{"name":"n"}' 'no plugin configs found' ''
	try '{"name":"n","plugins":[{"type":"a"},{}]}' "failed to parse plugin config 1: error parsing configuration: missing 'type'" ''
	try '{"name":"n","plugins":[7]}' 'failed to parse plugin config 0: error parsing configuration: ' ''
	try '{"name":"n","plugins":[{"type":"a","capabilities":7}]}' 'failed to parse plugin config 0: error parsing configuration: ' ''
	try '{"name":"n","plugins":[{"type":"a","capabilities":{"k":1}}]}' 'failed to parse plugin config 0: error parsing configuration: ' ''
	try '{"name":"n","plugins":[{"type":""}]}' "failed to parse plugin config 0: error parsing configuration: missing 'type'" ''
	try '{"name":"n","plugins":null}' "invalid 'plugins' type <nil>"
	try '{"name":"n","disableCheck":null,"plugins":[{"type":"a"}]}' 'invalid type <nil> for disableCheck'
	try '{"name":"n","cniVersion":"x","cniVersions":["1.0.0"]}' 'invalid cniVersion x: '
	try '{' 'unexpected end of JSON input'
	try '{"name":"n","disableCheck":7,"plugins":[{"type":"a"}]}' 'invalid type float64 for disableCheck'
	try '{"name":"n","disableGC":"yes","plugins":[{"type":"a"}]}' 'invalid value "yes" for disableGC'
	try '{"name":"n","loadOnlyInlinedPlugins":true}' "\`loadOnlyInlinedPlugins\` is true, and no 'plugins' key"
	try '{"name":"n","cniVersions":7,"plugins":[{"type":"a"}]}' 'invalid type for cniVersions: '
	try '{"name":"n","cniVersions":["1.0.0",7],"plugins":[{"type":"a"}]}' 'invalid type for cniVersions index 1: float64'
	try '{"name":"n","cniVersions":["x"],"plugins":[{"type":"a"}]}' 'invalid cniVersions entry x at index 0: '
}

@test "the network's name is checked before it becomes part of a path" {
	only_ours "libcni checks on ADD only"
	double a
	for name in ../x a/b . .. '' '-x' 'a b'; do
		printf '{"name":"%s","cniVersion":"1.0.0","plugins":[{"type":"a"}]}' "$name" >"$NET/n.conflist"
		for cmd in add del check 'gc --all' status; do
			tool $cmd "$name" /x
			same "status of $cmd '$name'" 1 "$status"
		done
	done
	called ''
}

@test "a single configuration is promoted: no list flags, no plugin directory" {
	double a b
	mkdir "$NET/n"
	echo '{"type":"b"}' >"$NET/n/10.conf"
	printf ' {"type":"a", "name":"n", "disableCheck":true, "x": 1}' >"$NET/n.conf"
	echo '{"ip4":{"ip":"10.1.0.2/16"}}' >"$T/a.result"
	works add n /x
	called 'ADD a'
	given a ADD '[.name,.cniVersion,.x]' '["n","",1]'
	same "the list in the cache" \
		'{"cniVersion":"","name":"n","plugins":[{"disableCheck":true,"name":"n","type":"a","x":1}]}' \
		"$(host sh -c 'cat /var/lib/cni/results/*' | jq -r '.config | @base64d')"
	works del n /x
	called 'DEL a'
	rm "$T/a.result"
	printf ' {"type":"a", "name":"n", "cniVersion":"1.0.0", "disableCheck":true}' >"$NET/n.conf"
	works add n /x
	works check n /x
	works del n /x
	called 'ADD a,CHECK a,DEL a'
}

@test "a single configuration without a type, or of a wrong shape, is an error" {
	for bad in '{"name":"n"}' '{"name":"n","type":7}' '[]' 7; do
		printf '%s' "$bad" >"$NET/n.conf"
		tool add n /x
		same "status of $bad" 1 "$status"
	done
}

@test "plugins of the directory follow the inlined ones, in the order of the files" {
	double a b c
	mkdir "$NET/n"
	echo '{"type":"c"}' >"$NET/n/20.conf"
	echo '{"type":"b","x":1}' >"$NET/n/10.conf"
	echo '{"type":"a"}' >"$NET/n/15.json"
	echo '{"type":"a"}' >"$NET/n/16.conflist"
	echo rubbish >"$NET/n/readme"
	mkdir "$NET/n/17.conf"
	list n a
	works add n /x
	called 'ADD a,ADD b,ADD c'
	given b ADD '[.name,.cniVersion,.x]' '["n","1.0.0",1]'
	cached '.config | @base64d | fromjson | .plugins' '[{"type":"a"}]'
	works del n /x
	called 'DEL c,DEL b,DEL a'
	list n a '"loadOnlyInlinedPlugins": true'
	works add n /y
	called 'ADD a'
	echo '{"name":"n","cniVersion":"1.0.0"}' >"$NET/n.conflist"
	works add n /z
	called 'ADD b,ADD c'
	list n a '"loadOnlyInlinedPlugins": "False"'
	works add n /1
	called 'ADD a,ADD b,ADD c'
	echo '{"x":1}' >"$NET/n/30.conf"
	tool add n /2
	same "status with a plugin without type" 1 "$status"
	called ''
}

@test "of cniVersions the highest that is known is used" {
	double a
	try() {
		list n a "$1"
		works add n "/$RANDOM$RANDOM"
		given a ADD .cniVersion "$2"
	}
	try '"cniVersion": "0.4.0", "cniVersions": ["0.3.1", "1.0.0"]' 1.0.0
	try '"cniVersion": "1.1.0", "cniVersions": ["0.3.1", "1.0.0"]' 1.1.0
	try '"cniVersion": "0.4.0", "cniVersions": ["9.0.0", "0.3.1"]' 0.4.0
	try '"cniVersion": "0.4.0", "cniVersions": ["1.2.0", "1.1.0", "1.0.0"]' 1.1.0
	echo '{"name":"n","cniVersions":["0.4.0"],"plugins":[{"type":"a"}]}' >"$NET/n.conflist"
	works add n /none
	given a ADD .cniVersion 0.4.0
}

# ---- what a plugin is given -------------------------------------------------------------------

@test "stdin: the plugin's object with the list's name and version, nothing else of the list" {
	double a
	list n '{"type":"a","name":"own","cniVersion":"0.3.0","k":{"x":[1,null,"é"]}}' '"args": {"cni": {}}' '"x": 1'
	works add n /x
	given a ADD . '{"type":"a","name":"n","cniVersion":"1.0.0","k":{"x":[1,null,"é"]}}'
	works status n /x
}

@test "capabilities are taken out, and a prevResult in the file is nobody's" {
	only_ours "libcni lets both through"
	double a b
	local p='"capabilities":{"k":true},"prevResult":{"cniVersion":"1.0.0","dns":{"domain":"leak"}}'
	list n "{\"type\":\"a\",$p} {\"type\":\"b\",$p}" '"cniVersion": "1.1.0"'
	works add n /x
	given a ADD '[has("capabilities"),has("prevResult")]' '[false,false]'
	given b ADD '[has("capabilities"),.prevResult.dns]' '[false,null]'
	works gc n --all
	given a GC '[has("capabilities"),has("prevResult")]' '[false,false]'
	works status n
	given a STATUS '[has("capabilities"),has("prevResult")]' '[false,false]'
	works del n /x
	given a DEL '[has("capabilities"),has("prevResult")]' '[false,false]'
	# In any spelling, as plugins read it in any.
	list n '{"type":"a","PrevResult":{"dns":{}},"NAME":"own","CNIVERSION":"0.1.0","Capabilities":{}}'
	works add n /y
	given a ADD 'keys' '["cniVersion","name","type"]'
}

@test "numbers, key order and strings reach the plugin as they stand in the file" {
	only_ours "libcni sends numbers through a double and sorts the keys"
	local text='"z":18446744073709551615,"y":9007199254740993,"x":1.0,"w":1e400,"v":-0,"u":0.10000000000000000555,"t":123456789012345678901234567890'
	double a
	list n "{\"type\":\"a\",$text,\"capabilities\":{\"k\":true}}"
	CAP_ARGS='{"k":{"b":18446744073709551615,"a":1.50}}' works add n /x
	grep -qF "{\"type\":\"a\",$text," "$T/a.ADD.stdin"
	grep -qF '"runtimeConfig":{"k":{"b":18446744073709551615,"a":1.50}}' "$T/a.ADD.stdin"
	works check n /x
	works del n /x
	grep -qF "{\"type\":\"a\",$text," "$T/a.DEL.stdin"
	grep -qF '18446744073709551615,"a"' "$T/a.DEL.stdin" || grep -qF '"b":18446744073709551615' "$T/a.DEL.stdin"
}

@test "runtimeConfig: of CAP_ARGS what the plugin declares true" {
	double a b c
	list n '{"type":"a","capabilities":{"ips":true,"mac":false}} {"type":"b","capabilities":{"mac":true,"dns":true}} {"type":"c"}'
	CAP_ARGS='{"ips":["10.0.0.1"],"mac":"00:11:22:33:44:55","portMappings":[],"Dns":1}' works add n /x
	given a ADD .runtimeConfig '{"ips":["10.0.0.1"]}'
	given b ADD .runtimeConfig '{"mac":"00:11:22:33:44:55"}'
	given c ADD 'has("runtimeConfig")' false
	cached '.capabilityArgs | keys' '["Dns","ips","mac","portMappings"]'
}

@test "runtimeConfig in the file: replaced as a whole when something matches, else kept" {
	double a b
	local p='"capabilities":{"k":true},"runtimeConfig":{"k":1,"old":2}'
	list n "{\"type\":\"a\",$p} {\"type\":\"b\",$p}"
	CAP_ARGS='{"k":5}' works add n /x
	given a ADD .runtimeConfig '{"k":5}'
	if [ -n "$stderr" ]; then says 'runtimeConfig'; fi
	works add n /y
	given a ADD .runtimeConfig '{"k":1,"old":2}'
	same stderr '' "$stderr"
	only_ours "libcni does not tell"
	CAP_ARGS='{"k":5}' works add n /z
	says 'network "n": the runtimeConfig in the file of plugin a is replaced'
}

@test "ADD: each plugin gets the result of the one before; CHECK and DEL get the last" {
	double a b c
	list n 'a b c'
	echo '{"cniVersion":"1.0.0","ips":[{"address":"10.1.0.2/16"}],"dns":{"domain":"a"}}' >"$T/a.result"
	works add n /x
	called 'ADD a,ADD b,ADD c'
	given a ADD 'has("prevResult")' false
	given b ADD .prevResult '{"cniVersion":"1.0.0","ips":[{"address":"10.1.0.2/16"}],"dns":{"domain":"a"}}'
	given c ADD .prevResult '{"cniVersion":"1.0.0","interfaces":[{"name":"b"}]}'
	is .interfaces '[{"name":"c"}]'
	works check n /x
	called 'CHECK a,CHECK b,CHECK c'
	works del n /x
	called 'DEL c,DEL b,DEL a'
	for p in a b c; do
		given $p CHECK .prevResult '{"cniVersion":"1.0.0","interfaces":[{"name":"c"}]}'
		given $p DEL .prevResult '{"cniVersion":"1.0.0","interfaces":[{"name":"c"}]}'
	done
	no_entry
}

@test "a result in another version than the list's is brought to that before it goes on" {
	only_ours "libcni lets it travel on"
	double a b
	echo '{"cniVersion":"0.3.1","ips":[{"version":"4","address":"10.1.0.2/16"}]}' >"$T/a.result"
	echo '{"ips":[{"address":"10.1.0.3/16"}]}' >"$T/b.result"
	list n 'a b' '"cniVersion": "1.1.0"'
	works add n /x
	given b ADD .prevResult '{"cniVersion":"1.1.0","ips":[{"address":"10.1.0.2/16"}]}'
	is . '{"cniVersion":"1.1.0","ips":[{"address":"10.1.0.3/16"}]}'
	cached .result.cniVersion 1.1.0
	list o 'a' '"cniVersion": "0.2.0"'
	works add o /x
	is . '{"cniVersion":"0.2.0","ip4":{"ip":"10.1.0.2/16"},"dns":{}}'
	double c
	echo '{"cniVersion":"1.0.0","interfaces":[{"name":"c"}]}' >"$T/c.result"
	list p 'c' '"cniVersion": "0.2.0"'
	dies 'plugin type="c" failed (add): cannot convert: no valid IP addresses' add p /x
	list p 'c' '"cniVersion": "7.7.7"'
	tool add p /x
	same "status in an unknown version" 1 "$status"
}

# ---- check, status, version -------------------------------------------------------------------

@test "CHECK is for 0.4.0 and later, and not when the list says so" {
	double a
	list n a '"cniVersion": "0.3.1"'
	dies 'configuration version "0.3.1" does not support the CHECK command' check n /x
	list n a '"disableCheck": true'
	silent check n /x
	list n a '"disableCheck": "TRUE"'
	silent check n /x
	called ''
	list n a '"disableCheck": "false"'
	silent check n /x
	called 'CHECK a'
	given a CHECK 'has("prevResult")' false
}

@test "CHECK stops at the first failure; its message is not wrapped" {
	double a b c
	refuses b CHECK 101 'b is not as it was'
	list n 'a b c'
	works add n /x
	called 'ADD a,ADD b,ADD c'
	dies 'b is not as it was' check n /x
	called 'CHECK a,CHECK b'
}

@test "CHECK repeats the arguments of the ADD unless it is given others" {
	only_ours "the Go tool takes those of the call alone"
	double a
	list n '{"type":"a","capabilities":{"k":true}}'
	CNI_ARGS=A=1 CAP_ARGS='{"k":1}' works add n /x
	works check n /x
	same CNI_ARGS A=1 "$(env_of a CHECK CNI_ARGS)"
	given a CHECK .runtimeConfig '{"k":1}'
	CNI_ARGS=A=2 CAP_ARGS='{"k":2}' works check n /x
	same CNI_ARGS A=2 "$(env_of a CHECK CNI_ARGS)"
	given a CHECK .runtimeConfig '{"k":2}'
}

@test "STATUS: from 1.1.0 on, every plugin, with no attachment" {
	double a b
	list n 'a b'
	silent status n /x
	called ''
	list n 'a b' '"cniVersion": "1.1.0"'
	CNI_ARGS=A=1 silent status n /x
	called 'STATUS a,STATUS b'
	for v in CNI_CONTAINERID CNI_NETNS CNI_IFNAME CNI_ARGS; do
		same "$v" '' "$(env_of a STATUS $v)"
	done
	given a STATUS 'keys' '["cniVersion","name","type"]'
	refuses a STATUS 51 'few left'
	dies 'few left' status n /x
	called 'STATUS a'
}

@test "gc and status need no namespace" {
	only_ours "the Go tool wants one"
	double a
	list n a '"cniVersion": "1.1.0"'
	silent status n
	silent gc n --all
	called 'STATUS a,GC a'
}

@test "version prints what each plugin supports, and fails where the list's version is missing" {
	only_ours "the Go tool has no such command"
	double a old
	does old VERSION 'echo "{\"code\":4,\"msg\":\"unknown CNI_COMMAND: VERSION\"}"; exit 1'
	list n 'a'
	works version n
	same stdout 'a: 0.3.1, 0.4.0, 1.0.0, 1.1.0' "$output"
	same CNI_NETNS dummy "$(env_of a VERSION CNI_NETNS)"
	given a VERSION . '{"cniVersion":"1.1.0"}'
	list n 'a old nosuch'
	tool version n
	same status 1 "$status"
	same "what can be said" 'a: 0.3.1, 0.4.0, 1.0.0, 1.1.0' "$output"
	says 'plugin old does not support config version "1.0.0"'
	if is_cnibox; then
		list n 'loopback'
		works version n
		same stdout 'loopback: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0' "$output"
	fi
}

# ---- the cache --------------------------------------------------------------------------------

@test "an entry is libcni's, readable for root alone" {
	double a
	list n '{"type":"a","capabilities":{"k":true}}'
	CNI_IFNAME=net1 CNI_ARGS='B=2;A=1' CAP_ARGS='{"z":1,"k":[true]}' works add n /var/run/netns/blue
	same "the file" /var/lib/cni/results/n-cnitool-296747069b8a02dc4e2a-net1 "$(entry)"
	same "its bytes" "{\"kind\":\"cniCacheV1\",\"containerId\":\"cnitool-296747069b8a02dc4e2a\",\"config\":\"$(base64 -w0 "$NET/n.conflist")\",\"ifName\":\"net1\",\"networkName\":\"n\",\"netns\":\"/var/run/netns/blue\",\"cniArgs\":[[\"B\",\"2\"],[\"A\",\"1\"]],\"capabilityArgs\":{\"k\":[true],\"z\":1},\"result\":{\"cniVersion\":\"1.0.0\",\"interfaces\":[{\"name\":\"a\"}]}}" \
		"$(host cat "$(entry)")"
	same modes '600 700' "$(host stat -c %a "$(entry)" /var/lib/cni/results | paste -sd' ')"
}

@test "DEL uses the configuration and the arguments of the ADD, whatever the files say now" {
	only_ours "the Go tool takes the current ones"
	double a b
	list n '{"type":"a","x":1,"capabilities":{"k":true}}'
	CNI_ARGS='A=1' CAP_ARGS='{"k":9007199254740993}' works add n /x
	list n '{"type":"b","x":2}' '"cniVersion": "1.1.0"'
	works del n /x
	called 'ADD a,DEL a'
	given a DEL '[.x,.cniVersion]' '[1,"1.0.0"]'
	grep -qF '"runtimeConfig":{"k":9007199254740993}' "$T/a.DEL.stdin"
	same CNI_ARGS A=1 "$(env_of a DEL CNI_ARGS)"
	no_entry
	works add n /x
	rm "$NET/n.conflist"
	works del n /x
	called 'ADD b,DEL b'
	no_entry
}

@test "what the call of DEL names beats what the cache remembers" {
	double a
	list n '{"type":"a","capabilities":{"k":true}}'
	CNI_ARGS='A=1' CAP_ARGS='{"k":1}' works add n /x
	CNI_ARGS='B=2' CAP_ARGS='{"k":2}' works del n /x
	same CNI_ARGS B=2 "$(env_of a DEL CNI_ARGS)"
	given a DEL .runtimeConfig '{"k":2}'
}

@test "DEL without an attachment, and a second DEL, are no errors" {
	double a b
	list n 'a b'
	silent del n /x
	works add n /x
	silent del n /x
	silent del n /x
	called 'DEL b,DEL a,ADD a,ADD b,DEL b,DEL a,DEL b,DEL a'
	given a DEL 'has("prevResult")' false
}

@test "DEL of a list older than 0.4.0 gets no prevResult" {
	double a
	echo '{"cniVersion":"0.3.1","interfaces":[{"name":"a"}]}' >"$T/a.result"
	list n a '"cniVersion": "0.3.1"'
	works add n /x
	works del n /x
	given a DEL 'has("prevResult")' false
}

@test "DEL asks every plugin, reports the first failure and keeps the entry" {
	only_ours "libcni stops at the first failure"
	double a b c
	list n 'a b c'
	works add n /x
	called 'ADD a,ADD b,ADD c'
	refuses c DEL 5 'c stays'
	refuses b DEL 5 'b stays'
	tool del n /x
	same status 1 "$status"
	says 'plugin type="c" failed \(delete\): c stays'
	[[ ${stderr##*$'\n'} == 'plugin type="c" failed (delete): c stays'* ]] || show "the first failure"
	called 'DEL c,DEL b,DEL a'
	[ -n "$(entry n-)" ]
	does c DEL :
	does b DEL :
	works del n /x
	no_entry
}

@test "a torn cache entry does not block DEL or CHECK, and goes with the attachment" {
	local good f text check='CHECK a,'
	double a
	list n a
	works add n /x
	f=$(entry)
	good=$(host cat "$f")
	called 'ADD a'
	is_ours || check='' # libcni is not tolerant in CHECK
	for text in '' ' ' '{' "${good:0:100}" "${good:0:-1}" "$good$good" null '[]' '{}' '"x"' \
		'{"kind":"cniCacheV9"}' "${good/cniCacheV1/other}" "${good/\"config\":\"/\"config\":\"*}" \
		'{"kind":"cniCacheV1"}' '{"kind":7,"ifName":[]}' \
		"$(head -c 3000 /dev/urandom | base64 -w0)"; do
		printf '%s' "$text" >"$T/torn"
		host cp "$T/torn" "$f"
		[ -z "$check" ] || works check n /x
		works del n /x
		called "${check}DEL a"
		no_entry
	done
	head -c 5000 /dev/urandom >"$T/torn"
	host cp "$T/torn" "$f"
	works del n /x
	called 'DEL a'
	no_entry
	host mkdir "$f"
	tool del n /x
	called 'DEL a'
}

@test "a cached result that cannot be used does not block DEL" {
	local f good
	double a
	list n a
	for bad in '"cniVersion":"9.9.9"' '"cniVersion":7' '"ips":[{"address":"rubbish"}]' '"ips":[null]' \
		'"interfaces":{}'; do
		works add n /x
		f=$(entry)
		host sed -i "s|\"result\":.*|\"result\":{$bad}}|" "$f"
		works del n /x
		called 'ADD a,DEL a'
		no_entry
	done
}

@test "the bare result of an old libcni is understood" {
	double a
	list n a
	echo '{"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.1.0.2/16"}],"dns":{}}' >"$T/legacy"
	host mkdir -p /var/lib/cni/results
	host cp "$T/legacy" /var/lib/cni/results/n-cnitool-296747069b8a02dc4e2a-eth0
	works check n /var/run/netns/blue
	given a CHECK .prevResult '{"cniVersion":"1.0.0","ips":[{"address":"10.1.0.2/16"}]}'
	works del n /var/run/netns/blue
	given a DEL .prevResult '{"cniVersion":"1.0.0","ips":[{"address":"10.1.0.2/16"}]}'
	no_entry
}

@test "a-b of c and a of b-c share a file name, but never an attachment" {
	only_ours "libcni looks at the name alone"
	double a
	list a a
	list a-b a
	works add a /x --id b-c
	called 'ADD a'
	dies 'the result cache has no room for this attachment: it belongs to network a, container b-c, interface eth0' \
		add a-b /x --id c
	works check a-b /x --id c
	says 'belongs to network a'
	given a CHECK 'has("prevResult")' false
	works del a-b /x --id c
	called 'CHECK a,DEL a'
	same "the entry" /var/lib/cni/results/a-b-c-eth0 "$(entry)"
	works gc a-b --all
	cached .networkName a
	works del a /x --id b-c
	no_entry
}

@test "a result that cannot be cached is an error, and the ADD is undone" {
	only_ours "libcni leaves the network configured"
	double a b
	list n 'a b'
	does b ADD 'rm -rf /var/lib/cni/results; echo >/var/lib/cni/results'
	tool add n /x
	same status 1 "$status"
	same stdout '' "$output"
	says 'failed to set network "n" cached result: '
	called 'ADD a,ADD b,DEL b,DEL a'
	does b ADD :
	tool add n /x
	same "status where it cannot even begin" 1 "$status"
	called ''
}

@test "names too long for a file name are refused before anything is done" {
	only_ours "libcni leaves the network configured"
	local id
	printf -v id '%0250d' 0
	double a
	list n a
	tool add n /x --id "$id"
	same status 1 "$status"
	called ''
}

@test "an unreadable cache directory is reported by gc; the plugins do their part" {
	only_ours "libcni takes it for an empty one"
	double a
	list n a '"cniVersion": "1.1.0"'
	host sh -c 'rm -rf /var/lib/cni/results; echo >/var/lib/cni/results'
	tool gc n --all
	same status 1 "$status"
	says 'result cache'
	called 'GC a'
}

# ---- a failing ADD ----------------------------------------------------------------------------

@test "when an ADD fails the plugins called get a DEL in reverse, and the first failure is reported" {
	only_ours "libcni leaves that to its caller"
	double a b c
	list n 'a b c'
	refuses b ADD 11 'b is busy'
	dies 'plugin type="b" failed (add): b is busy' add n /x
	called 'ADD a,ADD b,DEL b,DEL a'
	given a DEL .prevResult.interfaces '[{"name":"a"}]'
	no_entry
	CNI_ARGS=A=1 CAP_ARGS='{"k":1}' CNI_IFNAME=net3 tool add n /x
	same "arguments of that DEL" "A=1 net3 $(env_of a ADD CNI_CONTAINERID)" \
		"$(env_of a DEL CNI_ARGS) $(env_of a DEL CNI_IFNAME) $(env_of a DEL CNI_CONTAINERID)"
}

@test "when that DEL fails too, the first failure counts and the attempt stays on record" {
	only_ours "libcni leaves that to its caller"
	double a b
	list n 'a b'
	refuses b ADD 11 'b is busy'
	refuses a DEL 5 'a stays'
	dies 'plugin type="b" failed (add): b is busy' add n /x
	called 'ADD a,ADD b,DEL b,DEL a'
	cached '[.networkName, has("result")]' '["n", false]'
	does a DEL :
	works gc n --all
	called 'DEL b,DEL a'
	no_entry
}

@test "a plugin that is not there fails the ADD; what was done is undone and nothing stays on record" {
	only_ours "libcni leaves that to its caller"
	double a b
	list n 'a nosuch b'
	CNI_PATH=$BIN:/nowhere dies "plugin type=\"nosuch\" failed (add): failed to find plugin \"nosuch\" in path [$BIN /nowhere]" add n /x
	called 'ADD a,DEL a'
	no_entry
}

@test "an ADD that was killed is on record for DEL and GC" {
	only_ours "libcni writes the entry at the end"
	double a b
	list n 'a b'
	does b ADD 'kill -9 $PPID; sleep 0.1'
	tool add n /x
	same status 137 "$status"
	cached '[.networkName, .netns, has("result")]' '["n", "/x", false]'
	works gc n --all
	called 'ADD a,ADD b,DEL b,DEL a'
	no_entry
	tool add n /x
	works del n /x
	called 'ADD a,ADD b,DEL b,DEL a'
	no_entry
}

@test "a second ADD of what is attached is refused and leaves it alive" {
	only_ours "libcni runs it, and its caller then deletes the living attachment"
	need_applet bridge host-local
	netns c1
	list n '{"type":"bridge","bridge":"br0","isGateway":true,"ipam":{"type":"host-local","subnet":"10.9.0.0/24"}}'
	works add n /run/netns/c1
	tool add n /run/netns/c1
	same status 1 "$status"
	same stdout '' "$output"
	says 'eth0 is attached to network "n" already'
	inside c1 ping -c 1 -W 2 10.9.0.1
	works check n /run/netns/c1
	works del n /run/netns/c1
	nothing_left br0
}

@test "an entry of a namespace that is gone does not stand in the way" {
	need_applet bridge host-local
	netns c1
	list n '{"type":"bridge","bridge":"br0","isGateway":true,"ipam":{"type":"host-local","subnet":"10.9.0.0/24"}}'
	works add n /run/netns/c1
	host ip netns del c1
	netns c1
	host rm -rf /var/lib/cni/networks
	works add n /run/netns/c1
	inside c1 ping -c 1 -W 2 10.9.0.1
	works del n /run/netns/c1
}

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
