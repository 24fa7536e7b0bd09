# The examples run, and leave nothing behind.

load helpers
load cnitool

setup() { sandbox && tool_setup; }
teardown() { sandbox_end; }

# True when no process of the example is left.
no_process() { ! grep -qsz "^EXAMPLE=$T\$" /proc/[0-9]*/environ; }

# example NAME: runs it on the test's node; its report is shown when something is wrong.
example() {
	local before
	need_applet bridge host-local portmap
	is_ours || skip "not our cnitool"
	before=$(host ip -o link)
	run host env "CNITOOL=$CNITOOL" "EXAMPLE=$T" timeout 600 "$CNIBOX_ROOT/examples/$1/run" "$CNI_PLUGIN_DIR"
	[ "$status" -eq 0 ] || { printf '%s\n' "$output" >&2 && return 1; }
	[[ $output == *'All as it should be.' && $output != *WRONG* ]]
	[ "$(grep -c '^   ok ' <<<"$output")" -gt 20 ]
	same "links of the node" "$before" "$(host ip -o link)"
	wait_for 60 no_process
}

@test "village: two networks on one container by two calls" {
	need_applet macvlan
	host ip -batch - <<<$'link add name sw0 type bridge\nlink add name probe link sw0 type macvlan\nlink del sw0' 2>/dev/null ||
		skip "this kernel has no macvlan links"
	only_cnibox "the CHECK of portmap 1.1.1 misses IPv6 rules where there is no IPv6"
	example village
}

@test "two-nodes: static routes, no address translation" { example two-nodes; }

@test "an example says how it is used, and that it needs a plugin directory" {
	for e in village two-nodes; do
		run "$CNIBOX_ROOT/examples/$e/run" --help
		same "status of --help" 0 "$status"
		[[ $output == *"examples/$e/run DIR"* ]]
		run "$CNIBOX_ROOT/examples/$e/run"
		same "status of no argument" 2 "$status"
	done
}

@test "every list and configuration in examples is one that cnitool takes" {
	local f dir name
	for f in "$CNIBOX_ROOT"/examples/{,*/,*/*/}*.{conf,conflist}; do
		[ -e "$f" ] || continue
		dir=${f%/*} name=$(jq -r .name "$f")
		NETCONFPATH=$dir works status "$name" /x
		same "complaints about $f" '' "$stderr"
	done
}
