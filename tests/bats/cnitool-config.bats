# cnitool: finding a configuration, and what of it a plugin is given. Plugins are doubles that record that.

load helpers
load cnitool

setup() { sandbox && tool_setup; }
teardown() { sandbox_end; }

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
