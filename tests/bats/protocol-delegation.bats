# IPAM plugins of all kinds, found and run by a main plugin.

load protocol

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
