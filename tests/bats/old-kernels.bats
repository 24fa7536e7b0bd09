# Kernels that know no alternative names (before 5.5: RHEL 8, Ubuntu 20.04), or say "invalid" of one that nobody has (5.5 to
# 5.18: Debian 11, RHEL 9, Ubuntu 22.04). The name and the alias of the host's end identify its owner, too. lacking.c stands in for
# the kernel.

load helpers

setup_file() {
	${CC:-cc} -std=gnu17 -O1 -Wall -shared -fPIC -o "$BATS_FILE_TMPDIR/lacking.so" "$BATS_TEST_DIRNAME/lacking.c" -ldl
}

setup() {
	need_applet bridge ptp host-local portmap
	only_cnibox "the Go plugins speak through other libraries"
	ldd "$(readlink -f "$CNI_PLUGIN_DIR/bridge")" >/dev/null 2>&1 || skip "a static program loads no library"
	sandbox
	netns c1
	mkdir "$T/old"
	for p in bridge ptp portmap host-local; do
		printf '#!/bin/sh\nASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD="%s" exec "%s/%s"\n' \
			"$BATS_FILE_TMPDIR/lacking.so" "$CNI_PLUGIN_DIR" "$p" >"$T/old/$p"
		chmod +x "$T/old/$p"
	done
	export CNI_PATH=$CNI_PLUGIN_DIR
}
teardown() { sandbox_end; }

config() {
	jq -nc --arg type "$1" '{cniVersion: "1.1.0", name: "net1", type: $type, ipMasq: true,
		ipam: {type: "host-local", subnet: "10.1.0.0/24"}} + if $type == "bridge" then {bridge: "br0", isGateway: true} else {} end'
}

# goes PLUGIN: every verb, with the namespace and without, twice, and of what was never there.
goes() {
	local c prev
	c=$(config "$1")
	ok DEL "$T/old/$1" never <<<"$c"
	ok ADD "$T/old/$1" c1 <<<"$c"
	prev=$(jq -c --argjson r "$output" '.prevResult = $r' <<<"$c")
	ok CHECK "$T/old/$1" c1 <<<"$prev"
	fails 102 '' ADD "$T/old/$1" c1 <<<"$c"
	ok CHECK "$T/old/$1" c1 <<<"$prev"
	NETNS='' ok DEL "$T/old/$1" c1 <<<"$c"
	ok DEL "$T/old/$1" c1 <<<"$c"
	nothing_left br0
	# Another's link has the name: ours gets a random one, and is found all the same.
	host ip link add "veth$(printf 'net1\nc1\neth0' | sha512sum | cut -c1-8)" type veth peer name other
	ok ADD "$T/old/$1" c1 <<<"$c"
	ok CHECK "$T/old/$1" c1 <<<"$(jq -c --argjson r "$output" '.prevResult = $r' <<<"$c")"
	NETNS='' ok DEL "$T/old/$1" c1 <<<"$c"
	host ip link del other
	nothing_left br0
	ok ADD "$T/old/$1" c1 <<<"$c"
	ok GC "$T/old/$1" c1 <<<"$(jq -c '.["cni.dev/valid-attachments"] = []' <<<"$c")"
	nothing_left br0
}

@test "bridge and ptp without alternative names" {
	export LACKING=altnames
	goes bridge
	goes ptp
}

@test "bridge and ptp where an alternative name that nobody has is an invalid one" {
	export LACKING=dellink
	goes bridge
	goes ptp
}

@test "a pair that a kernel with alternative names marked is found by one that says invalid" {
	local c
	c=$(config bridge)
	ok ADD bridge c1 <<<"$c"
	LACKING=dellink NETNS='' ok DEL "$T/old/bridge" c1 <<<"$c"
	nothing_left br0
}

@test "portmap without alternative names: a living holder keeps its port, one that is gone yields it" {
	local c r p
	export LACKING=altnames
	c=$(config bridge)
	p='{"cniVersion":"1.1.0","name":"net1","type":"portmap","runtimeConfig":{"portMappings":[{"hostPort":8080,"containerPort":80}]}}'
	netns c2
	ok ADD "$T/old/bridge" c1 <<<"$c"
	r=$output
	ok ADD "$T/old/portmap" c1 <<<"$(jq -c --argjson r "$r" '.prevResult = $r' <<<"$p")"
	serve c1 80
	same answer "c1 10.1.0.1" "$(ask host tcp 127.0.0.1 8080)"
	ok ADD "$T/old/bridge" c2 <<<"$c"
	fails 102 'c1' ADD "$T/old/portmap" c2 <<<"$(jq -c --argjson r "$output" '.prevResult = $r' <<<"$p")"
	ok CHECK "$T/old/portmap" c1 <<<"$(jq -c --argjson r "$r" '.prevResult = $r' <<<"$p")"
	NETNS='' ok DEL "$T/old/portmap" c1 <<<"$p"
	NETNS='' ok DEL "$T/old/portmap" c1 <<<"$p"
}
