# What a plugin says of itself when it is called without CNI_COMMAND. Clients parse its first line:
# they want a semantic version (semver.org) and compare it with those of the reference plugins.

load helpers

setup() { sandbox; }
teardown() { sandbox_end; }

@test "the first line ends in a semantic version, at least 1.1.0, with ours as build metadata" {
	local p line own
	only_cnibox "Debian's plugins say 'version unknown'"
	own=$("$CNIBOX_BUILD/cnibox" --version)
	for p in $("$CNIBOX_BUILD/cnibox" --list); do
		[ "$p" != cnitool ] || continue
		status=0
		host env -u CNI_COMMAND "$CNI_PLUGIN_DIR/$p" </dev/null >"$T/stdout" 2>"$T/stderr" || status=$?
		taken
		same "status of $p" 0 "$status"
		same "stdout of $p" '' "$output"
		line=${stderr%%$'\n'*}
		[[ $line =~ ^"CNI $p plugin v"([0-9]+)\.([0-9]+)\.([0-9]+)\+cnibox\.([0-9]+\.[0-9]+\.[0-9]+)$ ]] ||
			show "$p"
		[ "${BASH_REMATCH[1]}" -gt 1 ] ||
			{ [ "${BASH_REMATCH[1]}" -eq 1 ] && [ "${BASH_REMATCH[2]}" -ge 1 ]; } || show "$p"
		same "our version" "$own" "cnibox ${BASH_REMATCH[4]}"
	done
}
