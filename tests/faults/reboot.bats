# A reboot: the files are those of the old life, the namespaces and the rules are not, and the boot ID
# is another. Nothing of the old life blocks the new one.

load ../bats/helpers

setup() {
	sandbox
	only_cnibox "the Go plugins keep the leases of an earlier boot for ever"
}
teardown() { sandbox_end; }

# reboot: a new kernel under the files of /var/lib and, on such a node, of /run/cni. The boot ID of this one cannot be
# changed, and another one mounted over it is not believed; so the leases are made those of an earlier boot.
reboot() {
	host sh -c 'for ns in $(ip netns | cut -d" " -f1); do ip netns del $ns; done
		nft flush ruleset; for i in $(seq 100); do
			l=$(ip -o link | grep -v ": lo:" | head -n 1 | sed "s/^[0-9]*: //; s/[@:].*//")
			[ -n "$l" ] || exit 0; ip link del "$l" || :; done'
	[ "${1:-}" = keep ] || host sh -c 'rm -rf /run/cnibox /run/cni/*'
	host python3 - <<-'E'
		import glob, os
		for f in glob.glob('/var/lib/cni/networks/*/*'):
		    if 'user.cnibox.boot' in os.listxattr(f):
		        os.setxattr(f, 'user.cnibox.boot', b'11111111-2222-3333-4444-555555555555')
	E
}

LIST='{"cniVersion":"1.1.0","name":"dbnet","plugins":[
	{"type":"bridge","bridge":"cni0","isGateway":true,"ipMasq":true,"ipam":{"type":"host-local","subnet":"10.1.0.0/29","routes":[{"dst":"0.0.0.0/0"}]}},
	{"type":"tuning","mac":"02:00:00:00:00:09"},
	{"type":"portmap","capabilities":{"portMappings":true}},
	{"type":"bandwidth","ingressRate":8000000,"ingressBurst":8000000,"egressRate":8000000,"egressBurst":8000000}]}'

# up N...: those containers, with host port 8080+N.
up() {
	local n CAP_ARGS
	for n; do
		netns "c$n"
		CAP_ARGS="{\"portMappings\":[{\"hostPort\":808$n,\"containerPort\":80}]}"
		chain_ok ADD "${LIST/00:09/00:0$n}" "c$n" || return
	done
}

down() {
	local n
	for n; do chain_ok DEL "$LIST" "c$n" || return; done
}

@test "a full network of the old life is free for the new one, for the same containers and for others" {
	up 1 2 3 4 5
	reboot
	up 1 2 6 7 8
	for n in 1 2 6 7 8; do
		CAP_ARGS="{\"portMappings\":[{\"hostPort\":808$n,\"containerPort\":80}]}" chain_ok CHECK "${LIST/00:09/00:0$n}" c$n
	done
	down 1 2 6 7 8
	# DEL of what did not survive: the runtime may still ask for it.
	down 3 4 5
	nothing_left cni0
}

@test "files that survive on a node whose /run is a disk do not get in the way either" {
	up 1 2 3 4 5
	reboot keep
	up 5 4 3 2 1
	down 1 2 3 4 5
	nothing_left cni0
	same "backups" '' "$(host sh -c 'ls -A /run/cni/tuning')"
}

@test "DEL and GC after the reboot, before anything is added" {
	up 1 2 3
	reboot keep
	down 1
	chain_ok GC "$LIST" c1
	nothing_left
	same "backups" '' "$(host sh -c 'ls -A /run/cni/tuning')"
	up 1
	down 1
	nothing_left cni0
}

@test "leases of this life are not taken for old ones" {
	up 1 2 3 4 5
	netns c6
	chain ADD "$LIST" c6
	failed any 'no IP addresses available'
	down 1 2 3 4 5
}

@test "without a readable boot ID nothing is taken from anybody" {
	up 1 2 3 4 5
	reboot
	host mount --bind /dev/null /proc/sys/kernel/random/boot_id
	netns c6
	chain ADD "$LIST" c6
	failed any 'no IP addresses available'
	chain_ok DEL "$LIST" c1
	up 7
	down 7 2 3 4 5
	nothing_left cni0
}

@test "cnitool's cache of the old life" {
	need_applet cnitool
	local tool=("$CNI_PLUGIN_DIR/cnitool" --cni-path "$CNI_PLUGIN_DIR")
	host sh -c 'cat >/etc/cni/net.d/dbnet.conflist' <<<"$LIST"
	netns c1
	host "${tool[@]}" add dbnet /run/netns/c1 >"$T/out"
	reboot
	netns c1
	host "${tool[@]}" add dbnet /run/netns/c1 >"$T/out"
	host "${tool[@]}" check dbnet /run/netns/c1
	reboot
	host "${tool[@]}" gc --all dbnet
	nothing_left
	same "cache" '' "$(host sh -c 'ls -A /var/lib/cni/results')"
}
