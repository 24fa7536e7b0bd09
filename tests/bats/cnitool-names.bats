# cnitool: which names matter to which command.

load helpers
load cnitool

setup() {
	sandbox && tool_setup
	only_ours "v1.3.0 wants a namespace for every command"
}
teardown() { sandbox_end; }

@test "gc, status and version are about no interface: CNI_IFNAME does not matter" {
	local name
	double a
	list n a '"cniVersion":"1.1.0"'
	for name in a/b abcdefghijklmnop . 'a b'; do
		for how in 'gc --all n' 'status n' 'version n'; do
			CNI_IFNAME=$name works $how
		done
		for how in 'add n /x' 'check n /x' 'del n /x'; do
			CNI_IFNAME=$name tool $how
			same "status of $how with CNI_IFNAME=$name" 1 "$status"
		done
	done
	called "$(yes 'GC a,STATUS a,VERSION a' | head -4 | paste -sd,)"
}
