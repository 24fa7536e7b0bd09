# The protocol's rules that are the same for every plugin: environment, stdin, versions, errors.

load protocol

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
