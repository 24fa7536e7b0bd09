# Plugins whose links not every kernel can make, killed and failing at their system calls: a sample of what
# tests/faults/run does elsewhere.

load ../bats/helpers

# attacked PLUGIN
attacked() {
	need_applet "${1#: }"
	[ -x "$CNIBOX_BUILD/faults/attack" ] || skip "tests/faults/build has not built $CNIBOX_BUILD/faults"
	run "$CNIBOX_BUILD/faults/attack" --every 29 --jobs 2 --only "$1" "$CNI_PLUGIN_DIR"
	echo "$output"
	[ "$status" = 0 ] && [[ $output == *": ${1#: } ADD"* ]]
}

@test "dummy, killed and failing at some of its system calls" { attacked dummy; }
@test "ipvlan, killed and failing at some of its system calls" { attacked ipvlan; }
@test "vlan, killed and failing at some of its system calls" { attacked ": vlan"; }
