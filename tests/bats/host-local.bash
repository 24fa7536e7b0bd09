# What the tests of host-local share. Load after helpers; call host_local_setup in setup.

# Every test starts with an empty store in /var/lib/cni/networks; the namespaces of the containers need not exist
# for it.
host_local_setup() {
	need_applet host-local
	sandbox
	store=/var/lib/cni/networks/net
	go=
	for d in /usr/lib/cni /usr/libexec/cni /opt/cni/bin; do
		[ -x $d/host-local ] && [ ! -L $d/host-local ] && go=$d/host-local && break
	done
	export CONF='{"ranges": [[{"subnet": "10.1.2.0/24"}]]}'
}

# conf [IPAM] [TOP]: a config with these members of "ipam" and these at the top.
conf() {
	jq -nc --argjson ipam "${1:-$CONF}" --argjson top "${2:-"{}"}" \
		'{cniVersion: "1.0.0", name: "net", type: "ptp", ipam: ({type: "host-local"} + $ipam)} + $top'
}

# status_conf [IPAM]: the same for STATUS and GC.
status_conf() { conf "${1:-$CONF}" '{"cniVersion": "1.1.0"}'; }

# The names in the store that are addresses, sorted.
leases() { host sh -c "cd $store 2>/dev/null && ls | grep -v -e ^lock -e ^last_" | sort | xargs; }

# All names and contents of the store.
state() { host sh -c "cd $store 2>/dev/null && ls -A && tail -n +1 *"; }

# lease ADDR CONTENT, in printf's notation.
lease() { host sh -c "mkdir -p $store && printf '$2' >$store/$1"; }

add() { ok ADD host-local "$1" "${2:-eth0}" <<<"${3:-$(conf)}"; }
del() { ok DEL host-local "$1" "${2:-eth0}" <<<"${3:-$(conf)}"; }

need_go() {
	only_cnibox "nothing to compare with"
	[ -n "$go" ] || skip "no Go plugin here"
}

# reboot: each lease that carries a boot id carries that of an earlier boot from now on. What is in /run goes.
reboot() {
	host python3 - "$store" <<-'E'
		import glob, os, sys
		for f in glob.glob(sys.argv[1] + '/*'):
		    if 'user.cnibox.boot' in os.listxattr(f):
		        os.setxattr(f, 'user.cnibox.boot', b'11111111-2222-4333-8444-555555555555')
	E
	host rm -rf /run/cnibox/host-local
}

# Whether somebody waits for a flock on the inode.
waiting() { host grep -q "^[0-9]*: -> FLOCK .*:$1 " /proc/locks; }

# hold: takes the lock of the store and keeps it until release_lock.
hold() {
	lock_inode=$(host stat -c %i $store/lock)
	spawn host sh -c 'exec 9<$1/lock && flock 9 && echo held >$2/held
		until [ -e $2/go ]; do sleep 0.02; done' sh $store "$T"
	wait_for 60 test -s "$T/held"
}
release_lock() { touch "$T/go"; }
