# The binary itself: how it is called, installed and asked what it is.

load helpers

setup() {
	sandbox
	only_cnibox "about the one binary"
	BOX=$(readlink -f "$CNI_PLUGIN_DIR/loopback")
}
teardown() { sandbox_end; }

# call CMD...: sets status, output and stderr.
call() {
	status=0
	host "$@" >"$T/stdout" 2>"$T/stderr" </dev/null || status=$?
	taken
}

# fine CMD...: the call succeeds and is quiet on stderr.
fine() {
	call "$@"
	[ "$status" -eq 0 ] && [ -z "$stderr" ] || show "$* should succeed quietly"
}

@test "--list names the applets, one a line, sorted, and they are what is installed" {
	fine "$BOX" --list
	same "order" "$(sort <<<"$output")" "$output"
	same "installed" "$output" "$(cd "$CNI_PLUGIN_DIR" && ls | grep -vx cnibox)"
	[[ $'\n'$output$'\n' == *$'\nloopback\n'* ]]
}

@test "--help tells usage and one line about each applet, and so does no argument" {
	local help a
	fine "$BOX" --help
	help=$output
	[[ $help == *Usage:* && $help == *--install* ]]
	for a in $("$BOX" --list); do
		[[ $help =~ $'\n'\ +$a\ +[a-z]+\ +[^\ ] ]] || show "$a in --help"
	done
	fine "$BOX" -h
	same "-h" "$help" "$output"
	fine "$BOX"
	same "no argument" "$help" "$output"
}

@test "--version prints the version" {
	fine "$BOX" --version
	[[ $output =~ ^cnibox\ [0-9]+\.[0-9]+\.[0-9]+ ]]
}

@test "an unknown applet, option or missing directory is refused" {
	call "$BOX" nosuch
	same "status" 2 "$status"
	same "stdout" '' "$output"
	[[ $stderr == *nosuch* ]]
	call "$BOX" --nosuch
	same "status" 2 "$status"
	call "$BOX" --install
	same "status" 2 "$status"
	call "$BOX" --install "$T/no/such/dir"
	same "status" 1 "$status"
	[[ $stderr == *"$T/no/such/dir"* ]]
}

@test "output that cannot be written is a failure" {
	local how
	for how in --help --list --version; do
		status=0
		host "$BOX" $how >/dev/full 2>/dev/null || status=$?
		same "status of $how" 1 "$status"
	done
}

@test "--install makes relative symlinks, again and again" {
	local a
	mkdir -p "$T/lib/cnibox" "$T/opt/cni"
	cp "$BOX" "$T/lib/cnibox/cnibox"
	fine "$T/lib/cnibox/cnibox" --install "$T/opt/cni/bin"
	same "links" "$("$BOX" --list)" "$(ls "$T/opt/cni/bin")"
	for a in "$T/opt/cni/bin"/*; do
		same "${a##*/}" ../../../lib/cnibox/cnibox "$(readlink "$a")"
	done
	call env CNI_COMMAND=VERSION "$T/opt/cni/bin/loopback"
	is .cniVersion 1.1.0
	fine "$T/lib/cnibox/cnibox" --install "$T/opt/cni/bin"
	same "links" "$("$BOX" --list)" "$(ls -A "$T/opt/cni/bin")"
	mv "$T/lib" "$T/opt" "$(mkdir "$T/moved" && echo "$T/moved")"
	call env CNI_COMMAND=VERSION "$T/moved/opt/cni/bin/loopback"
	is .cniVersion 1.1.0
}

@test "--install beside the binary links to its bare name" {
	mkdir "$T/bin"
	cp "$BOX" "$T/bin/cnibox"
	fine "$T/bin/cnibox" --install "$T/bin"
	same "link" cnibox "$(readlink "$T/bin/loopback")"
	(cd "$T/bin" && fine sh -c "cd $T/bin && ./cnibox --install .")
	same "link" cnibox "$(readlink "$T/bin/loopback")"
	[ ! -L "$T/bin/cnibox" ]
}

@test "--install sees through a symlinked directory" {
	mkdir -p "$T/a/b/real" "$T/x"
	cp "$BOX" "$T/x/cnibox"
	ln -s a/b/real "$T/link"
	fine "$T/x/cnibox" --install "$T/link"
	call env CNI_COMMAND=VERSION "$T/link/loopback"
	is .cniVersion 1.1.0
}

@test "--install replaces a stale link and leaves other people's files alone" {
	mkdir "$T/bin"
	ln -s /nowhere "$T/bin/loopback"
	echo mine >"$T/bin/bridge"
	call "$BOX" --install "$T/bin"
	same "status" 1 "$status"
	[[ $stderr == *"$T/bin/bridge"* ]]
	same "the file" mine "$(cat "$T/bin/bridge")"
	call env CNI_COMMAND=VERSION "$T/bin/loopback"
	is .cniVersion 1.1.0
}

@test "an applet is found by the name of a symlink, a hard link and a copy" {
	local how
	mkdir "$T/bin"
	cp "$BOX" "$T/bin/box"
	netns c1
	for how in 'ln -s box' 'ln box' 'cp box'; do
		rm -f "$T/bin/loopback"
		(cd "$T/bin" && $how loopback)
		ok ADD "$T/bin/loopback" c1 lo <<<'{"cniVersion":"1.0.0","name":"n","type":"loopback"}'
		is '.interfaces[0].name' lo
	done
}

@test "cnibox APPLET is the applet" {
	netns c1
	printf '#!/bin/sh\nexec %s loopback\n' "$BOX" >"$T/wrapper"
	chmod +x "$T/wrapper"
	ok ADD "$T/wrapper" c1 lo <<<'{"cniVersion":"1.0.0","name":"n","type":"loopback"}'
	is '.interfaces[0].name' lo
	call env CNI_COMMAND=VERSION "$BOX" loopback
	is .cniVersion 1.1.0
}

@test "under a name that is no applet it is cnibox" {
	cp "$BOX" "$T/something"
	fine "$T/something" --list
	same "list" "$("$BOX" --list)" "$output"
}

@test "an applet run by hand says what it is and how it is called" {
	local a
	for a in $("$BOX" --list); do
		[ "$a" != cnitool ] || continue
		call "$CNI_PLUGIN_DIR/$a"
		same "$a: status" 0 "$status"
		same "$a: stdout" '' "$output"
		[[ $stderr =~ ^CNI\ $a\ plugin\ .+$'\n'CNI\ protocol\ versions\ supported:\  ]] || show "$a"
		[[ $stderr == *CNI_COMMAND* ]] || show "$a: how it is called"
	done
}

@test "every applet works without any environment" {
	local a
	for a in $("$BOX" --list); do
		[ "$a" != cnitool ] || continue
		call env -i CNI_COMMAND=VERSION "$CNI_PLUGIN_DIR/$a"
		holds '.supportedVersions[-1] == "1.1.0"'
	done
}

@test "it is small, and needs no library at the start but libc, libmnl and jansson" {
	local libs
	[ -z "${ASAN_OPTIONS:-}" ] || skip "sanitizers make it large"
	libs=$(ldd "$BOX" | awk '{print $1}' | grep -Ev 'linux-vdso|ld-linux|ld-musl|libc\.|libmnl\.|libjansson\.|libm\.' || :)
	same "other libraries" '' "$libs"
	strip -o "$T/stripped" "$BOX"
	[ "$(stat -c %s "$T/stripped")" -lt 327680 ]
}
