# The protocol, seen from outside, of every plugin in the directory: environment, stdin, versions,
# verbs, errors, output, delegation. CNI spec 1.1.0, section 2, and what the Go plugins make of it.

load helpers

setup() { sandbox; }
teardown() { sandbox_end; }

ALL="0.1.0 0.2.0 0.3.0 0.3.1 0.4.0 1.0.0 1.1.0"

# Every plugin there is.
plugins() {
	local f
	for f in "$CNI_PLUGIN_DIR"/*; do
		case ${f##*/} in cnibox | cnitool | *.* | LICENSE) continue ;; esac
		[ -x "$f" ] && echo "${f##*/}"
	done
}

# The versions plugin $1 supports. Go plugins before 1.5 stop at 1.0.0.
supported() {
	local v from=0.1.0 on='' last=1.1.0
	is_cnibox || last=$(CNI_COMMAND=VERSION "$CNI_PLUGIN_DIR/loopback" | jq -r .cniVersion)
	case $1 in bandwidth) from=0.3.0 ;; vrf) from=0.3.1 ;; firewall) from=0.4.0 ;; esac
	for v in $ALL; do
		[ "$v" != "$from" ] || on=yes
		[ -z "$on" ] || echo "$v"
		[ "$v" != "$last" ] || break
	done
}

# raw PLUGIN [VARIABLE=VALUE]... <stdin: a call with just these variables.
raw() {
	status=0
	timeout -k 2 60 nsenter -t "$HOLDER" -m -n -- env -u CNI_PLUGIN_DIR "${@:2}" \
		"$CNI_PLUGIN_DIR/$1" >"$T/stdout" 2>"$T/stderr" 3>&- || status=$?
	taken
}

# The variables of an attachment, for raw.
attachment() { ATT=(CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 "CNI_PATH=$CNI_PLUGIN_DIR"); }

# answers CODE MSG DETAILS [WHAT]: the last call failed with exactly this error object; * as DETAILS
# stands for any.
answers() {
	local got
	got=$(jq -rs --arg any "$3" 'if length == 1 then .[0] | "\(.code) \(.msg) (\(if $any == "*"
		then "*" else .details // "" end))" else "\(length) documents" end' \
		<"$T/stdout" 2>/dev/null) || got='no JSON'
	[ "$status" = 1 ] && [ "$got" = "$1 $2 ($3)" ] || show "${4-the call} should answer $1 $2 ($3)"
}

# ---- called by hand ---------------------------------------------------------------------------

@test "without CNI_COMMAND every plugin says what it is on stderr, whatever its arguments" {
	local p how
	for p in $(plugins); do
		for how in '' -h --version; do
			status=0
			[ "$p" != dhcp ] || [ -z "$how" ] || continue
			host env -u CNI_PLUGIN_DIR CNI_COMMAND= "$CNI_PLUGIN_DIR/$p" $how \
				>"$T/stdout" 2>"$T/stderr" <&- || status=$?
			taken
			same "$p: status" 0 "$status"
			same "$p: stdout" '' "$output"
			[[ ${stderr%%$'\n'*} =~ ^CNI\ $p\ plugin\ .+ ]] || show "$p: first line"
			[[ $stderr == *$'\n'"CNI protocol versions supported: $(supported "$p" | paste -sd, |
				sed 's/,/, /g')"* ]] || show "$p: second line"
		done
	done
}

# ---- VERSION ----------------------------------------------------------------------------------

@test "VERSION prints one compact line and looks at nothing else" {
	local p want
	for p in $(plugins); do
		want=$(supported "$p" | jq -Rnc '[inputs] | {cniVersion: .[-1], supportedVersions: .}')
		raw "$p" CNI_COMMAND=VERSION CNI_CONTAINERID='a b' CNI_IFNAME=a/b <<<'not JSON'
		same "$p: status" 0 "$status"
		printf '%s\n' "$want" | cmp - "$T/stdout" || show "$p: bytes"
		raw "$p" CNI_COMMAND=VERSION </dev/null
		same "$p: with no stdin" "$want" "$output"
	done
}

@test "VERSION answers 1.1.0 whatever the input says" {
	only_cnibox "older Go plugins stop at 1.0.0"
	raw loopback CNI_COMMAND=VERSION <<<'{"cniVersion":"0.4.0"}'
	is .cniVersion 1.1.0
}

@test "VERSION that cannot be written is a failure" {
	local p
	for p in $(plugins); do
		status=0
		CNI_COMMAND=VERSION host "$CNI_PLUGIN_DIR/$p" >/dev/full 2>/dev/null </dev/null || status=$?
		same "$p: status" 1 "$status"
	done
}

# ---- environment ------------------------------------------------------------------------------

@test "missing variables are reported together, in order" {
	local p
	for p in $(plugins); do
		raw "$p" CNI_COMMAND=ADD </dev/null
		answers 4 'required env variables [CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH] missing' '' "$p ADD"
		raw "$p" CNI_COMMAND=CHECK </dev/null
		answers 4 'required env variables [CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH] missing' '' "$p CHECK"
		raw "$p" CNI_COMMAND=DEL </dev/null
		answers 4 'required env variables [CNI_CONTAINERID,CNI_IFNAME,CNI_PATH] missing' '' "$p DEL"
	done
}

@test "each variable of ADD is required, and empty is missing" {
	local v i
	attachment
	for i in "${!ATT[@]}"; do
		v=${ATT[$i]%%=*}
		raw loopback CNI_COMMAND=ADD "${ATT[@]}" "$v=" </dev/null
		answers 4 "required env variables [$v] missing" '' "$v empty"
		raw loopback CNI_COMMAND=ADD "${ATT[@]:0:$i}" "${ATT[@]:$((i + 1))}" </dev/null
		answers 4 "required env variables [$v] missing" '' "$v unset"
	done
}

@test "GC and STATUS require CNI_PATH and nothing else" {
	local p verb
	only_cnibox "GC and STATUS came with spec 1.1.0"
	for p in $(plugins); do
		for verb in GC STATUS; do
			raw "$p" CNI_COMMAND=$verb </dev/null
			answers 4 'required env variables [CNI_PATH] missing' '' "$p $verb"
		done
	done
	raw loopback CNI_COMMAND=GC CNI_PATH=/p CNI_CONTAINERID='a b' CNI_IFNAME=a/b \
		<<<'{"cniVersion":"1.1.0","name":"n"}'
	same "what is not required is not validated" 0 "$status"
}

@test "an invalid variable is reported before the missing ones" {
	local p
	for p in $(plugins); do
		raw "$p" CNI_COMMAND=ADD CNI_CONTAINERID='a b' CNI_IFNAME= </dev/null
		answers 4 'invalid characters in containerID' 'a b' "$p"
		raw "$p" CNI_COMMAND=DEL CNI_IFNAME=a/b </dev/null
		answers 4 'interface name contains / or : or whitespace characters' '*' "$p"
		raw "$p" CNI_COMMAND=ADD CNI_CONTAINERID=_ CNI_IFNAME=a/b </dev/null
		answers 4 'invalid characters in containerID' '_' "$p"
	done
}

@test "the environment is judged before stdin is read" {
	raw loopback CNI_COMMAND=ADD <<<'not JSON'
	answers 4 'required env variables [CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH] missing' ''
}

@test "container IDs: letters, digits, _ . -, of any length, beginning with a letter or digit" {
	local id long
	attachment
	printf -v long '%0300d' 7
	for id in a 7 A.b_c-d 0.- "$long"; do
		raw loopback CNI_COMMAND=DEL "${ATT[@]}" CNI_CONTAINERID="$id" <<<'{"cniVersion":"1.0.0","name":"n"}'
		same "status for $id" 0 "$status"
	done
	for id in -a .a _a . a/b 'a b' 'a:b' ä $'a\nb' $'a\n' ' a' 'a%' ../a; do
		raw loopback CNI_COMMAND=DEL "${ATT[@]}" CNI_CONTAINERID="$id" <<<'{"cniVersion":"1.0.0","name":"n"}'
		failed 4 '^invalid characters in containerID' "DEL of \"$id\""
	done
}

@test "interface names: 1 to 15 bytes, not . or .., no / : or white space" {
	local name
	attachment
	for name in a eth0 123456789012345 ... a.b 'ä' '%d' -; do
		raw loopback CNI_COMMAND=CHECK "${ATT[@]}" CNI_IFNAME="$name" </dev/null
		failed 6 '^error unmarshall network config' "CHECK of \"$name\""
	done
	raw loopback CNI_COMMAND=CHECK "${ATT[@]}" CNI_IFNAME=1234567890123456 </dev/null
	answers 4 'interface name is too long' 'interface name should be less than 16 characters'
	raw loopback CNI_COMMAND=CHECK "${ATT[@]}" CNI_IFNAME=äääääääx </dev/null
	failed 6 '' "15 bytes"
	raw loopback CNI_COMMAND=CHECK "${ATT[@]}" CNI_IFNAME=ääääääää </dev/null
	failed 4 '^interface name is too long' "16 bytes"
	for name in . ..; do
		raw loopback CNI_COMMAND=CHECK "${ATT[@]}" CNI_IFNAME=$name </dev/null
		answers 4 'interface name is . or ..' ''
	done
	for name in a/b a:b 'a b' ' ' $'a\tb' $'a\nb' $'a\xc2\x85' $'a\xc2\xa0b'; do
		raw loopback CNI_COMMAND=CHECK "${ATT[@]}" CNI_IFNAME="$name" </dev/null
		answers 4 'interface name contains / or : or whitespace characters' '*' "\"$name\""
	done
}

# ---- stdin ------------------------------------------------------------------------------------

@test "what is not one JSON object is refused by every plugin" {
	local p text
	attachment
	for p in $(plugins); do
		raw "$p" CNI_COMMAND=ADD "${ATT[@]}" </dev/null
		answers 6 'error unmarshall network config: unexpected end of JSON input' '' "$p, empty"
		raw "$p" CNI_COMMAND=ADD "${ATT[@]}" <<<'{"name":"n"} x'
		failed 6 '^error unmarshall network config: ' "$p, text behind"
	done
	for text in '{' '[]' '"a"' '1' 'nonsense' '{"name":"n"}{}' '{"name":"n",}' '{"name":"n"' \
		$'\xef\xbb\xbf{"name":"n"}' "{'name':'n'}" '{name:"n"}' '{"name":"n"}//' '{"name":"n"}}'; do
		raw loopback CNI_COMMAND=ADD "${ATT[@]}" <<<"$text"
		failed 6 '^error unmarshall network config: ' "$text"
		is .code 6
	done
}

@test "stdin that cannot be read is code 5" {
	local p
	attachment
	for p in $(plugins); do
		raw "$p" CNI_COMMAND=ADD "${ATT[@]}" </
		failed 5 '^error reading from stdin[:;] ' "$p"
		is .code 5
	done
}

@test "the network's name: required, same rule as container IDs" {
	local p text long
	attachment
	for p in $(plugins); do
		for text in '{}' '{"cniVersion":"1.0.0"}' '{"name":""}' '{"name":null}'; do
			raw "$p" CNI_COMMAND=ADD "${ATT[@]}" <<<"$text"
			answers 7 'missing network name' '' "$p, $text"
		done
		raw "$p" CNI_COMMAND=ADD "${ATT[@]}" <<<'{"name":"../x"}'
		answers 7 'invalid characters found in network name' '../x' "$p"
	done
	for text in '{"name":1}' '{"name":["n"]}' '{"name":{}}'; do
		raw loopback CNI_COMMAND=ADD "${ATT[@]}" <<<"$text"
		failed 6 '^error unmarshall network config: ' "$text"
		is .code 6
	done
	printf -v long '%01000d' 7
	raw loopback CNI_COMMAND=DEL "${ATT[@]}" <<<"{\"cniVersion\":\"1.0.0\",\"name\":\"$long\"}"
	same "a long name" 0 "$status"
}

@test "an unknown verb is reported after stdin, and needs no other variable" {
	local p verb
	for p in $(plugins); do
		raw "$p" CNI_COMMAND=FOO </dev/null
		answers 6 'error unmarshall network config: unexpected end of JSON input' '' "$p"
		for verb in FOO add Version 'ADD '; do
			raw "$p" CNI_COMMAND="$verb" <<<'{"cniVersion":"1.0.0","name":"n"}'
			answers 4 "unknown CNI_COMMAND: $verb" '' "$p"
		done
	done
}

@test "keys match whatever their case, and the last one counts" {
	attachment
	raw loopback CNI_COMMAND=CHECK "${ATT[@]}" <<<'{"CNIVERSION":"0.3.1","NAME":"x"}'
	answers 1 'config version does not allow CHECK' ''
	raw loopback CNI_COMMAND=CHECK "${ATT[@]}" <<<'{"CniVersion":"1.0.0","NAME":"x","name":"y z"}'
	answers 7 'invalid characters found in network name' 'y z'
	raw loopback CNI_COMMAND=CHECK "${ATT[@]}" <<<'{"name":"y z","Name":"x","cniVersion":"0.3.1"}'
	answers 1 'config version does not allow CHECK' ''
	raw loopback CNI_COMMAND=CHECK "${ATT[@]}" <<<'{"name":"x","cniVersion":"0.3.1","cniVersion":"9.9.9"}'
	answers 1 'plugin version does not allow CHECK' ''
}

@test "unknown keys, nulls and odd nesting in unknown keys are harmless" {
	netns c1
	ok ADD loopback c1 lo <<<'{"cniVersion":"1.0.0","name":"n","type":"loopback","x":{"y":[1,{"z":null}]},
		"prevResult":null,"ipam":null,"dns":null,"runtimeConfig":null,"args":null,"capabilities":null}'
}

# survives PLUGIN WHAT: the last call ended in an orderly way.
survives() {
	[ "$status" -eq 0 ] || failed any '' "$1, $2"
}

@test "hostile input ends in an orderly way in every plugin" {
	local p
	attachment
	mkdir "$T/in"
	{ printf '{"name":"n","cniVersion":"1.0.0","x":"' && head -c 20000000 /dev/zero | tr '\0' x && echo '"}'; } >"$T/in/huge string"
	head -c 1000000 /dev/zero | tr '\0' '[' >"$T/in/deep arrays"
	{ printf '{"name":"n","x":' && yes '{"a":' | head -n 100000 | tr -d '\n'; } >"$T/in/deep objects"
	printf '{"name":"n\\u0000","cniVersion":"1.0.0"}' >"$T/in/escaped NUL in the name"
	printf '{"name":"n","cniVersion":"1.0.0","\\u0000":1}' >"$T/in/escaped NUL in a key"
	printf '{"name":"n","cniVersion":"1.0.0"}\0' >"$T/in/NUL at the end"
	printf '{"name":"n\0m"}' >"$T/in/NUL in a string"
	printf '{"name":"n\xff\xfe","cniVersion":"1.0.0"}' >"$T/in/invalid UTF-8 in the name"
	printf '{"name":"n","cniVersion":"1.0.0","x":"\xc3\x28"}' >"$T/in/invalid UTF-8 elsewhere"
	printf '{"name":"n","cniVersion":"1.0.0","x":"\\ud800"}' >"$T/in/lone surrogate"
	printf '{"name":"n","cniVersion":"1.0.0","x":1e99999,"y":123456789012345678901234567890}' >"$T/in/huge numbers"
	printf '{"name":"n","cniVersion":"1.0.0","ipam":[],"dns":7,"prevResult":"x","runtimeConfig":1}' >"$T/in/wrong types"
	head -c 100000 /dev/urandom >"$T/in/noise"
	for p in $(plugins); do
		for f in "$T/in"/*; do
			raw "$p" CNI_COMMAND=CHECK "${ATT[@]}" <"$f"
			survives "$p" "${f##*/}"
		done
	done
}

@test "a NUL cannot cut a name short" {
	attachment
	raw loopback CNI_COMMAND=DEL "${ATT[@]}" <<<'{"name":"n\u0000/../x","cniVersion":"1.0.0"}'
	failed any '' "escaped NUL"
}

# ---- versions ---------------------------------------------------------------------------------

@test "ADD and DEL take exactly the versions that the plugin supports" {
	local p v verb list
	attachment
	for p in $(plugins); do
		list=$(supported "$p" | jq -Rr '"\"\(.)\""' | paste -sd ' ')
		for verb in ADD DEL; do
			for v in 9.9.9 1.0 abc; do
				raw "$p" CNI_COMMAND=$verb "${ATT[@]}" <<<"{\"name\":\"n\",\"cniVersion\":\"$v\"}"
				answers 1 'incompatible CNI versions' "config is \"$v\", plugin supports [$list]" "$p $verb $v"
			done
		done
	done
	for v in 0.4 1.0.0-rc1 v1.0.0 ' 1.0.0' 0.9.0; do
		raw loopback CNI_COMMAND=ADD "${ATT[@]}" <<<"{\"name\":\"n\",\"cniVersion\":\"$v\"}"
		failed 1 '^incompatible CNI versions' "$v"
	done
}

@test "plugins younger than the spec refuse what was before them" {
	local p
	attachment
	need_applet bandwidth
	for p in bandwidth firewall vrf; do
		[ -e "$CNI_PLUGIN_DIR/$p" ] || continue
		raw $p CNI_COMMAND=ADD "${ATT[@]}" <<<'{"name":"n"}'
		failed 1 'incompatible CNI versions; config is "0.1.0", plugin supports \["0.[34]' "$p"
		raw $p CNI_COMMAND=DEL "${ATT[@]}" <<<'{"name":"n","cniVersion":""}'
		failed 1 'incompatible CNI versions; config is "0.1.0"' "$p"
	done
}

@test "CHECK needs 0.4.0, of the config first, then of the plugin, then an exact match" {
	local p
	attachment
	check() { raw "$p" CNI_COMMAND=CHECK "${ATT[@]}" <<<"$1"; }
	for p in $(plugins); do
		check '{"name":"n","cniVersion":"0.3.1"}'
		answers 1 'config version does not allow CHECK' '*' "$p"
		check '{"name":"n","cniVersion":"9.9.9"}'
		answers 1 'plugin version does not allow CHECK' '*' "$p"
		check '{"name":"n","cniVersion":"0.4.5"}'
		answers 1 'incompatible CNI versions' '*' "$p"
	done
	p=loopback
	check '{"name":"n"}'
	answers 1 'config version does not allow CHECK' '*' "$p"
	check '{"name":"n","cniVersion":""}'
	answers 1 'config version does not allow CHECK' '*' "$p"
	check '{"name":"n","cniVersion":"abc"}'
	failed 6 'failed to convert major version part "abc"' "$p"
	check '{"name":"n","cniVersion":"1.0.0-rc1"}'
	failed 6 'failed to convert micro version part "0-rc1"' "$p"
	check '{"name":"n","cniVersion":"1.0.0.0"}'
	failed 6 'invalid version "1.0.0.0": too many parts' "$p"
}

@test "a version that is no string is code 6" {
	local p verb
	attachment
	for p in $(plugins); do
		for verb in ADD DEL CHECK; do
			raw "$p" CNI_COMMAND=$verb "${ATT[@]}" <<<'{"name":"n","cniVersion":1}'
			failed 6 '^(decoding version from network config|error unmarshall network config): ' "$p $verb"
			is .code 6
		done
	done
}

@test "GC and STATUS need 1.1.0 in the same way" {
	local p verb
	only_cnibox "GC and STATUS came with spec 1.1.0"
	for p in $(plugins); do
		for verb in GC STATUS; do
			call() { raw "$p" CNI_COMMAND=$verb CNI_PATH=/p <<<"$1"; }
			call '{"name":"n","cniVersion":"1.0.0"}'
			answers 1 "config version does not allow $verb" '*' "$p"
			call '{"name":"n","cniVersion":"9.9.9"}'
			answers 1 "plugin version does not allow $verb" '*' "$p"
		done
	done
	p=loopback
	for verb in GC STATUS; do
		call '{"name":"n"}'
		answers 1 "config version does not allow $verb" '*' "$p"
		call '{"cniversion":"0.3.1","NAME":"x"}'
		answers 1 "config version does not allow $verb" '*' "$p"
		call '{"name":"n","cniVersion":"1.0.5"}'
		answers 1 "config version does not allow $verb" '*' "$p"
		call '{"name":"n","cniVersion":"1.1.5"}'
		answers 1 "plugin version does not allow $verb" '*' "$p"
		call '{"name":"n","cniVersion":"abc"}'
		failed 6 'failed to convert major version part "abc"' "$p"
		call ''
		answers 6 'error unmarshall network config: unexpected end of JSON input' '' "$p"
		call '{"cniVersion":"1.1.0"}'
		answers 7 'missing network name' '' "$p"
	done
}

@test "GC of a plugin with nothing to collect is silent, and so is STATUS" {
	local verb
	only_cnibox "GC and STATUS came with spec 1.1.0"
	for verb in GC STATUS; do
		ok $verb loopback x <<<'{"name":"n","cniVersion":"1.1.0","type":"loopback"}'
		same "stdout of $verb" '' "$output"
		same "stderr of $verb" '' "$stderr"
	done
}

# ---- the namespace ----------------------------------------------------------------------------

# A name for the node's own namespace.
self_netns() {
	host sh -c 'touch /run/netns/self && mount --bind /proc/self/ns/net /run/netns/self'
}

@test "the node's own namespace is refused before anything is done" {
	local p verb before
	only_cnibox "the Go plugins look after their work, and print two documents"
	self_netns
	before=$(host sh -c 'ip -j addr; ip -j route; nft list ruleset; find /var/lib/cni /run/cnibox')
	for p in $(plugins); do
		for verb in ADD DEL; do
			NETNS=/run/netns/self cni $verb "$p" c1 <<<"{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"type\":\"$p\",
				\"master\":\"lo\",\"device\":\"lo\",\"ipam\":{\"type\":\"host-local\",\"subnet\":\"10.1.0.0/24\"}}"
			answers 8 "plugin's netns and netns from CNI_NETNS should not be the same" '*' "$p $verb"
			NETNS=/proc/self/ns/net cni $verb "$p" c1 <<<'{"cniVersion":"1.0.0","name":"n"}'
			answers 8 "plugin's netns and netns from CNI_NETNS should not be the same" '*' "$p $verb"
		done
	done
	same "the node afterwards" "$before" "$(host sh -c 'ip -j addr; ip -j route; nft list ruleset; find /var/lib/cni /run/cnibox')"
}

@test "CNI_NETNS_OVERRIDE lifts the guard with 1 and true only" {
	local v
	self_netns
	for v in 1 true TRUE True; do
		export CNI_NETNS_OVERRIDE=$v
		NETNS=/run/netns/self ok ADD loopback c1 lo <<<'{"cniVersion":"1.0.0","name":"n","type":"loopback"}'
	done
	for v in '' 0 yes T 01 false; do
		export CNI_NETNS_OVERRIDE=$v
		NETNS=/run/netns/self cni ADD loopback c1 lo <<<'{"cniVersion":"1.0.0","name":"n","type":"loopback"}'
		same "status with override \"$v\"" 1 "$status"
		[[ $output == *"should not be the same"* ]]
	done
}

@test "a path that is no namespace is named in the error" {
	NETNS=/etc/hosts fails 8 'unknown FS magic on "/etc/hosts"' ADD loopback c1 lo \
		<<<'{"cniVersion":"1.0.0","name":"n","type":"loopback"}'
	NETNS=/run/netns/gone fails 8 'failed to Statfs "/run/netns/gone": no such file or directory' \
		ADD loopback c1 lo <<<'{"cniVersion":"1.0.0","name":"n","type":"loopback"}'
}

@test "DEL with a namespace that is gone, or with none, succeeds" {
	local conf='{"cniVersion":"1.0.0","name":"n","type":"bridge","bridge":"br0"}'
	NETNS=/run/netns/gone ok DEL bridge c1 <<<"$conf"
	same stdout '' "$output"
	NETNS='' ok DEL bridge c1 <<<"$conf"
	NETNS='' ok DEL loopback c1 lo <<<"$conf"
}

# ---- errors and output ------------------------------------------------------------------------

@test "an error is indented by four, without a line feed at the end, and escapes like Go" {
	local code='"code": 7,
    "msg": "invalid characters found in network name",
    "details": "\u003ca\u0026b\u003e\u2028"
}'
	attachment
	raw loopback CNI_COMMAND=ADD "${ATT[@]}" <<<'{"cniVersion":"1.0.0","name":"<a&b>\u2028"}'
	if is_cnibox; then
		printf '{\n    "cniVersion": "1.0.0",\n    %s' "$code" | cmp - "$T/stdout" || show bytes
	else
		printf '{\n    %s' "$code" | cmp - "$T/stdout" || show bytes
	fi
}

@test "an error carries the config's version, or 1.1.0 when there is none" {
	only_cnibox "the Go plugins never label errors"
	attachment
	raw loopback CNI_COMMAND=ADD "${ATT[@]}" <<<'{"cniVersion":"0.3.1"}'
	is 'keys_unsorted' '["cniVersion","code","msg"]'
	is .cniVersion 0.3.1
	raw loopback CNI_COMMAND=ADD "${ATT[@]}" <<<'nonsense'
	is .cniVersion 1.1.0
	raw loopback CNI_COMMAND=ADD <<<'{"cniVersion":"0.3.1"}'
	is .cniVersion 1.1.0
	raw loopback CNI_COMMAND=ADD "${ATT[@]}" <<<'{"cniVersion":"abc","name":"n"}'
	holds '.cniVersion | . == "abc" or . == "1.1.0"'
}

@test "a result that cannot be written is a failure, and nothing stays" {
	local out conf
	only_cnibox "the Go plugins leave everything configured"
	conf='{"cniVersion":"1.0.0","name":"n","type":"bridge","bridge":"br0",
		"ipam":{"type":"host-local","subnet":"10.1.0.0/24"}}'
	for out in /dev/full closed; do
		netns c1
		[ $out != closed ] || out=/dev/fd/9
		status=0
		(
			[ $out = /dev/full ] && exec 1>/dev/full || exec 1>&-
			CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 \
				CNI_PATH=$CNI_PLUGIN_DIR host "$CNI_PLUGIN_DIR/bridge" <<<"$conf" 2>"$T/stderr"
		) || status=$?
		same "status" 1 "$status"
		inside_is c1 '[.[].ifname]' '["lo"]' ip -j link
		nothing_left br0
		host ip netns del c1
	done
}

@test "closed descriptors are not mistaken for something else" {
	local p
	attachment
	for p in $(plugins); do
		status=0
		host env "${ATT[@]}" CNI_COMMAND=ADD "$CNI_PLUGIN_DIR/$p" >"$T/stdout" 2>"$T/stderr" <&- || status=$?
		taken
		failed any '^error (reading from stdin|unmarshall network config)' "$p without stdin"
		status=0
		host env "${ATT[@]}" CNI_COMMAND=ADD "$CNI_PLUGIN_DIR/$p" >"$T/stdout" 2>&- </dev/null || status=$?
		taken
		failed any '^error unmarshall network config: ' "$p without stderr"
	done
}

# ---- results in every version -----------------------------------------------------------------

@test "host-local: the bytes of a result in each family of versions" {
	local v n=1 body
	need_applet host-local
	for v in $(supported host-local); do
		n=$((n + 1))
		cni ADD host-local c$n <<<"{\"cniVersion\":\"$v\",\"name\":\"n\",\"type\":\"bridge\",
			\"ipam\":{\"type\":\"host-local\",\"subnet\":\"10.1.0.0/24\",\"routes\":[{\"dst\":\"0.0.0.0/0\"}]}}"
		same "status for $v" 0 "$status"
		case $v in
		0.1.0 | 0.2.0) body='    "ip4": {
        "ip": "10.1.0.'$n'/24",
        "gateway": "10.1.0.1",
        "routes": [
            {
                "dst": "0.0.0.0/0"
            }
        ]
    },
    "dns": {}' ;;
		0.*) body='    "ips": [
        {
            "version": "4",
            "address": "10.1.0.'$n'/24",
            "gateway": "10.1.0.1"
        }
    ],
    "routes": [
        {
            "dst": "0.0.0.0/0"
        }
    ],
    "dns": {}' ;;
		*) body='    "ips": [
        {
            "address": "10.1.0.'$n'/24",
            "gateway": "10.1.0.1"
        }
    ],
    "routes": [
        {
            "dst": "0.0.0.0/0"
        }
    ]' ;;
		esac
		# Go before 1.5 always wrote "dns", and its keys in the order of the spec.
		if is_cnibox; then
			printf '{\n    "cniVersion": "%s",\n%s\n}' "$v" "$body" | cmp - "$T/stdout" || show "bytes for $v"
		else
			jq_is 'del(.dns)' "$(jq 'del(.dns)' <<<"{\"cniVersion\":\"$v\",$body}")" <"$T/stdout"
		fi
	done
}

@test "host-local: a result with IPv6 in each family of versions" {
	local v n=0
	for v in $(supported host-local); do
		n=$((n + 1))
		ok ADD host-local c$n <<<"{\"cniVersion\":\"$v\",\"name\":\"n\",\"type\":\"bridge\",
			\"ipam\":{\"type\":\"host-local\",\"ranges\":[[{\"subnet\":\"FD00:0:0:1::/64\"}],[{\"subnet\":\"10.1.0.0/24\"}]]}}"
		case $v in
		0.1.0 | 0.2.0)
			is '.ip6.ip' "fd00:0:0:1::$((n + 1))/64"
			is '.ip4.ip' "10.1.0.$((n + 1))/24"
			is 'has("ips")' false
			;;
		0.*)
			is '[.ips[].version]' '["6","4"]'
			is '.ips[0].address' "fd00:0:0:1::$((n + 1))/64"
			is 'has("ip4") or has("ip6")' false
			;;
		*)
			is '[.ips[] | has("version")]' '[false,false]'
			is '.ips[0].gateway' 'fd00:0:0:1::1'
			;;
		esac
	done
}

@test "loopback: the true shape in each family of versions" {
	local v
	only_cnibox "the Go plugin prints the newest shape under every label"
	for v in $ALL; do
		netns "v$v"
		ok ADD loopback "v$v" lo <<<"{\"cniVersion\":\"$v\",\"name\":\"n\",\"type\":\"loopback\"}"
		is .cniVersion "$v"
		case $v in
		0.1.0 | 0.2.0)
			is 'del(.cniVersion)' '{"ip4":{"ip":"127.0.0.1/8"},"ip6":{"ip":"::1/128"},"dns":{}}'
			;;
		0.*)
			is '[.ips[].version] | sort' '["4","6"]'
			is .dns '{}'
			is '[.interfaces[].name]' '["lo"]'
			is '.interfaces[0].sandbox' "/run/netns/v$v"
			;;
		*)
			is keys_unsorted '["cniVersion","interfaces","ips"]'
			is '[.ips[] | has("version")] | any' false
			;;
		esac
	done
}

@test "bridge: the true shape in each family of versions" {
	local v n=0
	need_applet bridge
	for v in $(supported bridge); do
		n=$((n + 1))
		netns "v$v"
		ok ADD bridge "v$v" <<<"{\"cniVersion\":\"$v\",\"name\":\"n\",\"type\":\"bridge\",\"bridge\":\"br0\",
			\"ipam\":{\"type\":\"host-local\",\"subnet\":\"10.1.0.0/24\"}}"
		is .cniVersion "$v"
		case $v in
		0.1.0 | 0.2.0)
			is '.ip4.ip' "10.1.0.$((n + 1))/24"
			is 'has("interfaces") or has("ips")' false
			;;
		*)
			is '[.interfaces | length, .[0].name, .[2].name]' '[3,"br0","eth0"]'
			is '.interfaces[2].sandbox' "/run/netns/v$v"
			is '.interfaces[0] | has("sandbox")' false
			is '.ips[0].interface' 2
			is '.ips[0].address' "10.1.0.$((n + 1))/24"
			is '.ips[0].version // "none"' "$(case $v in 0.*) echo '"4"' ;; *) echo '"none"' ;; esac)"
			;;
		esac
		# The same sandbox and version make a CHECK and a DEL that fit.
		case $v in
		0.1* | 0.2* | 0.3*) ;;
		*) ok CHECK bridge "v$v" <<<"{\"cniVersion\":\"$v\",\"name\":\"n\",\"type\":\"bridge\",\"bridge\":\"br0\",
			\"ipam\":{\"type\":\"host-local\",\"subnet\":\"10.1.0.0/24\"},\"prevResult\":$output}" ;;
		esac
		ok DEL bridge "v$v" <<<"{\"cniVersion\":\"$v\",\"name\":\"n\",\"type\":\"bridge\",\"bridge\":\"br0\",
			\"ipam\":{\"type\":\"host-local\",\"subnet\":\"10.1.0.0/24\"}}"
		same "stdout of DEL" '' "$output"
	done
	nothing_left br0
}

@test "the newest results have their keys sorted at every level" {
	only_cnibox "the Go plugins before 1.5 keep the order of the spec"
	netns c1
	ok ADD bridge c1 <<<'{"cniVersion":"1.1.0","name":"n","type":"bridge","bridge":"br0",
		"dns":{"search":["a"],"nameservers":["10.0.0.1"],"domain":"d","options":["o"]},
		"ipam":{"type":"host-local","subnet":"10.1.0.0/24","routes":[{"dst":"10.2.0.0/16","gw":"10.1.0.9","priority":5}]}}'
	jq -S . <<<"$output" >"$T/sorted"
	jq . <<<"$output" | cmp "$T/sorted" - || show "order"
}

# ---- prevResult -------------------------------------------------------------------------------

PREV='"interfaces":[{"name":"eth0","mac":"02:00:00:00:00:01","sandbox":"/run/netns/c1"}],
	"ips":[{"interface":0,"address":"10.1.0.2/24"}],"routes":[{"dst":"0.0.0.0/0","gw":"10.1.0.1"}]'

@test "prevResult goes through a chained plugin in every version" {
	local v prev
	need_applet tuning
	netns c1
	for v in $(supported tuning); do
		case $v in
		0.1.0 | 0.2.0) prev='{"ip4":{"ip":"10.1.0.2/24","gateway":"10.1.0.1","routes":[{"dst":"0.0.0.0/0"}]},"dns":{"domain":"d"}}' ;;
		0.*) prev=$(jq -c '.ips[0].version = "4" | .dns.domain = "d"' <<<"{$PREV}") ;;
		*) prev=$(jq -c '.dns.domain = "d"' <<<"{$PREV}") ;;
		esac
		ok ADD tuning c1 lo <<<"{\"cniVersion\":\"$v\",\"name\":\"n\",\"type\":\"tuning\",\"prevResult\":$prev}"
		is . "$(jq -c --arg v "$v" '.cniVersion = $v' <<<"$prev")"
	done
}

@test "prevResult of the wrong shape or type is refused" {
	need_applet tuning
	netns c1
	call() { fails 6 "$1" ADD tuning c1 lo <<<"{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"type\":\"tuning\",\"prevResult\":$2}"; }
	call 'could not parse prevResult: .*result type supports \[1.0.0.*\] but unmarshalled CNIVersion is "0.4.0"' "{\"cniVersion\":\"0.4.0\",$PREV}"
	call 'could not parse prevResult' "{\"cniVersion\":\"\",$PREV}"
	call 'could not parse prevResult' '{"ips":[{"address":"10.1.0.2"}]}'
	call 'could not parse prevResult' '{"ips":[{"address":"10.1.0.02/24"}]}'
	call 'could not parse prevResult' '{"ips":{}}'
	cni ADD tuning c1 lo <<<'{"cniVersion":"1.0.0","name":"n","type":"tuning","prevResult":[]}'
	failed any ''
}

@test "prevResult with null elements does not crash" {
	local v what
	need_applet tuning
	only_cnibox "the Go plugins crash"
	netns c1
	for v in 0.3.1 1.0.0; do
		for what in '"ips":[null]' '"interfaces":[null]' '"routes":[null]'; do
			fails any 'prevResult' ADD tuning c1 lo \
				<<<"{\"cniVersion\":\"$v\",\"name\":\"n\",\"type\":\"tuning\",\"prevResult\":{$what}}"
		done
	done
}

@test "a result without an address has no form in 0.2.0" {
	need_applet bridge
	netns c1
	fails any 'cannot convert: no valid IP addresses' ADD bridge c1 \
		<<<'{"cniVersion":"0.2.0","name":"n","type":"bridge","bridge":"br0"}'
	is_cnibox || return 0
	inside_is c1 '[.[].ifname]' '["lo"]' ip -j link
	nothing_left br0
}

# ---- delegation -------------------------------------------------------------------------------

# double NAME SCRIPT: a plugin on CNI_PATH. It notes every call in $T/calls.
double() {
	mkdir -p "$T/bin"
	printf '#!/bin/sh\necho "$CNI_COMMAND" >>%s/calls\ncat >%s/stdin.$CNI_COMMAND\n%s\n' "$T" "$T" "$2" >"$T/bin/$1"
	chmod +x "$T/bin/$1"
	: >"$T/calls"
}

# The config of a bridge that asks double "third".
third() {
	printf '{"cniVersion":"%s","name":"n","type":"bridge","bridge":"br0","ipam":{"type":"third","x":[1,2]}}' "${1:-1.0.0}"
}

ON_ADD='[ "$CNI_COMMAND" != ADD ] || echo'

# After a failed ADD for c1: nothing of it is left. The Go plugins leave the link, so that the next
# case gets a new namespace.
undone() {
	if is_cnibox; then
		inside_is c1 '[.[].ifname]' '["lo"]' ip -j link
		nothing_left br0
	else
		host ip netns del c1
		netns c1
	fi
}

@test "a third-party IPAM plugin gets the caller's stdin and environment" {
	netns c1
	double third 'env | grep ^CNI_ | grep -v PLUGIN_DIR | sort >'"$T"'/env.$CNI_COMMAND
		'"$ON_ADD"' "{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.7.0.5/24\",\"gateway\":\"10.7.0.1\"}],\"routes\":[{\"dst\":\"0.0.0.0/0\"}]}"'
	local conf verb
	conf=$(third)
	export CNI_PATH=/nowhere:$T/bin
	CNI_ARGS='IgnoreUnknown=1;A=b' ok ADD bridge c1 net7 <<<"$conf"
	is '.ips[0].address' 10.7.0.5/24
	is '.ips[0].interface' 2
	inside_is c1 '.[0].addr_info | map(select(.family == "inet")) | .[0] | [.local, .prefixlen]' '["10.7.0.5",24]' ip -j addr show net7
	inside_is c1 '[.[] | select(.dst == "default")][0].gateway' 10.7.0.1 ip -j route
	CNI_ARGS='IgnoreUnknown=1;A=b' ok CHECK bridge c1 net7 <<<"$(jq -c --argjson p "$output" '.prevResult = $p' <<<"$conf")"
	CNI_ARGS='IgnoreUnknown=1;A=b' ok DEL bridge c1 net7 <<<"$conf"
	same "the verbs" "ADD CHECK DEL" "$(paste -sd ' ' "$T/calls")"
	for verb in ADD DEL; do
		same "stdin of $verb" "$conf" "$(cat "$T/stdin.$verb")"
	done
	for verb in ADD CHECK DEL; do
		same "environment of $verb" "CNI_ARGS=IgnoreUnknown=1;A=b
CNI_COMMAND=$verb
CNI_CONTAINERID=c1
CNI_IFNAME=net7
CNI_NETNS=/run/netns/c1
CNI_PATH=/nowhere:$T/bin" "$(cat "$T/env.$verb")"
	done
	nothing_left br0
}

@test "GC and STATUS reach a third-party IPAM plugin" {
	only_cnibox "GC and STATUS came with spec 1.1.0"
	double third ':'
	CNI_PATH=$T/bin ok STATUS bridge x <<<"$(third 1.1.0)"
	CNI_PATH=$T/bin ok GC bridge x <<<"$(third 1.1.0)"
	same "the verbs" "STATUS GC" "$(paste -sd ' ' "$T/calls")"
	double third 'echo "{\"code\":50,\"msg\":\"not yet\"}"; exit 1'
	CNI_PATH=$T/bin fails 50 'not yet' STATUS bridge x <<<"$(third 1.1.0)"
}

@test "an IPAM plugin that knows no GC is no failure of GC" {
	only_cnibox "GC came with spec 1.1.0"
	double third 'echo "{\"code\":4,\"msg\":\"unknown CNI_COMMAND: GC\"}"; exit 1'
	CNI_PATH=$T/bin ok GC bridge x <<<"$(third 1.1.0)"
}

@test "an IPAM result counts by its own label, whatever the config's version" {
	local doc
	netns c1
	for doc in '{"ips":[{"address":"10.7.0.5/24"}]}' \
		'{"cniVersion":"","ips":[{"address":"10.7.0.5/24"}]}' \
		'{"cniVersion":"1.0.0","ips":[{"address":"10.7.0.5/24"}],"vendor":{"x":1}}' \
		'{"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.7.0.5/24"}],"dns":{}}' \
		'{"cniVersion":"0.3.0","ips":[{"version":"4","address":"10.7.0.5/24"}]}' \
		'{"cniVersion":"0.2.0","ip4":{"ip":"10.7.0.5/24"},"dns":{}}' \
		'{"cniVersion":"0.1.0","ip4":{"ip":"10.7.0.5/24"}}'; do
		double third "$ON_ADD '$doc'"
		CNI_PATH=$T/bin ok ADD bridge c1 <<<"$(third)"
		is .cniVersion 1.0.0
		is '.ips[0].address' 10.7.0.5/24
		is '.ips[0] | has("version")' false
		CNI_PATH=$T/bin ok DEL bridge c1 <<<"$(third)"
	done
}

@test "an error of the IPAM plugin is passed on as it is" {
	netns c1
	double third '[ "$CNI_COMMAND" = DEL ] || { echo "{\"code\":11,\"msg\":\"x <y>\",\"details\":\"d\"}"; echo noise >&2; exit 1; }'
	CNI_PATH=$T/bin cni ADD bridge c1 <<<"$(third)"
	answers 11 'x <y>' d
	undone
	double third 'echo "{\"cniVersion\":\"1.0.0\",\"code\":11,\"msg\":\"x\"}"; exit 3'
	CNI_PATH=$T/bin cni DEL bridge c1 <<<"$(third)"
	answers 11 x ''
}

@test "whatever else an IPAM plugin does wrong is an error, and nothing stays" {
	local script
	netns c1
	for script in 'echo hello' 'echo "[]"' 'echo "{"' 'echo "{} {}"' \
		'echo "{\"cniVersion\":\"9.9.9\"}"' 'echo "{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"nonsense\"}]}"' \
		'echo "{\"cniVersion\":\"1.0.0\",\"ips\":7}"' 'echo "{\"cniVersion\":\"1.0.0\"}"' \
		'exit 1' 'echo boom >&2; exit 7' 'echo hello; exit 1' 'kill -KILL $$' 'kill -SEGV $$' \
		'head -c 3000000 /dev/zero | tr "\0" x' 'head -c 3000000 /dev/zero | tr "\0" x >&2; exit 1'; do
		double third "[ \"\$CNI_COMMAND\" = ADD ] || exit 0; $script"
		CNI_PATH=$T/bin cni ADD bridge c1 <<<"$(third)"
		failed any '.' "$script"
		undone
	done
}

@test "an IPAM plugin that floods its output is stopped" {
	only_cnibox "the Go plugins read without bound"
	netns c1
	double third '[ "$CNI_COMMAND" != ADD ] || exec cat /dev/zero'
	CNI_PATH=$T/bin CALL_TIMEOUT=20 cni ADD bridge c1 <<<"$(third)"
	failed any .
	nothing_left br0
}

@test "what an IPAM plugin says while failing without an error object is reported" {
	netns c1
	double third '[ "$CNI_COMMAND" != ADD ] || { echo boom >&2; exit 7; }'
	CNI_PATH=$T/bin fails 999 'netplugin failed: "boom\\n"' ADD bridge c1 <<<"$(third)"
	undone
	double third '[ "$CNI_COMMAND" != ADD ] || exit 7'
	CNI_PATH=$T/bin fails 999 'netplugin failed with no error message: exit status 7' ADD bridge c1 <<<"$(third)"
	undone
	double third '[ "$CNI_COMMAND" != ADD ] || kill -KILL $$'
	CNI_PATH=$T/bin fails 999 'netplugin failed with no error message: signal: killed' ADD bridge c1 <<<"$(third)"
	undone
	double third '[ "$CNI_COMMAND" != ADD ] || { echo hello; exit 1; }'
	CNI_PATH=$T/bin fails 999 'netplugin failed but error parsing its diagnostic message.*hello' ADD bridge c1 <<<"$(third)"
}

@test "an error object printed with exit status 0 is an error all the same" {
	only_cnibox "the Go plugins take it for an empty result"
	netns c1
	double third "$ON_ADD '{\"code\":7,\"msg\":\"no address left\"}'"
	CNI_PATH=$T/bin fails 7 'no address left' ADD bridge c1 <<<"$(third)"
	nothing_left br0
}

@test "an ADD that fails after IPAM gives the address back" {
	netns c1
	inside c1 ip link add eth0 type veth peer name other
	double third "$ON_ADD '{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.7.0.5/24\"}]}'"
	CNI_PATH=$T/bin cni ADD bridge c1 <<<"$(third)"
	failed any .
	same "ADDs and DELs" "$(grep -c ADD "$T/calls")" "$(grep -c DEL "$T/calls")"
	nothing_left br0
}

@test "a missing IPAM plugin is named with the path" {
	netns c1
	mkdir "$T/a" "$T/b"
	CNI_PATH=$T/a:$T/b fails 999 "failed to find plugin \"third\" in path \[$T/a $T/b\]" ADD bridge c1 <<<"$(third)"
	undone
	mkdir "$T/a/third"
	CNI_PATH=$T/a fails 999 "failed to find plugin \"third\" in path \[$T/a\]" ADD bridge c1 <<<"$(third)"
	undone
	CNI_PATH=$T/a fails any 'invalid plugin name: \.\./third' ADD bridge c1 <<<"$(third | sed 's/"third"/"..\/third"/')"
	undone
}

@test "the first file of that name on CNI_PATH counts, through symlinks" {
	netns c1
	double third "$ON_ADD '{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.7.0.5/24\"}]}'"
	mkdir "$T/a" "$T/z"
	mv "$T/bin/third" "$T/z/real"
	ln -s ../z/real "$T/a/third"
	printf '#!/bin/sh\nexit 1\n' >"$T/bin/third"
	CNI_PATH=$T/a:$T/bin ok ADD bridge c1 <<<"$(third)"
	is '.ips[0].address' 10.7.0.5/24
}

@test "a file that cannot be executed is an error that says so" {
	netns c1
	mkdir "$T/bin"
	echo 'no program' >"$T/bin/third"
	CNI_PATH=$T/bin cni ADD bridge c1 <<<"$(third)"
	failed any '([Pp]ermission denied|failed to find plugin)'
	undone
	chmod +x "$T/bin/third"
	printf '\177ELF nonsense' >"$T/bin/third"
	CNI_PATH=$T/bin fails any '[Ee]xec format error' ADD bridge c1 <<<"$(third)"
	undone
}

@test "our own IPAM in the same process and as a program of its own cannot be told apart" {
	local how conf verb
	only_cnibox "the Go plugins always execute"
	mkdir "$T/bin"
	cp "$(readlink -f "$CNI_PLUGIN_DIR/host-local")" "$T/bin/host-local"
	for how in "$CNI_PLUGIN_DIR" "$T/bin"; do
		export CNI_PATH=$how
		netns c1
		netns c2
		conf='{"cniVersion":"1.0.0","name":"n","type":"bridge","bridge":"br0","ipam":{"type":"host-local","subnet":"10.1.0.0/30"}}'
		{
			ok ADD bridge c1 <<<"$conf"
			jq -S 'del(.interfaces[].mac, .interfaces[1].name)' <<<"$output"
			cni ADD bridge c2 <<<"$conf"
			failed any .
			echo "$output"
			host grep -r . /var/lib/cni | sort
			for verb in ADD DEL; do
				cni $verb bridge c2 <<<'{"cniVersion":"1.0.0","name":"n","type":"bridge","bridge":"br0","ipam":{"type":"host-local","subnet":"10.1.0.0/33"}}'
				echo "$status $output"
			done
			CNI_ARGS='IP=10.9.9.9' cni ADD bridge c2 <<<"$conf"
			echo "$status $output"
			ok DEL bridge c1 <<<"$conf"
			nothing_left br0
		} >"$T/story.${how##*/}"
		host ip netns del c1
		host ip netns del c2
	done
	diff -u "$T/story.plugins" "$T/story.bin"
}
