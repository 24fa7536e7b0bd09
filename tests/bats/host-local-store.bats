# host-local and what happens to its directory and its disk: stores that are replaced, file systems that are full, or
# keep whole seconds only, or are seen by several machines; indexes of networks that are gone.

load helpers
load host-local

setup() { host_local_setup; }
teardown() { sandbox_end; }

# ---- a store that is replaced -----------------------------------------------------------------

# while_waiting SCRIPT VERB ID: runs the script while that call waits for the lock of the store, then lets it go on.
while_waiting() {
	hold
	cni "$2" host-local "$3" <<<"$(conf)" &
	pid=$!
	wait_for 60 waiting "$lock_inode"
	host sh -ec "cd ${store%/*} && $1"
	release_lock
	wait "$pid"
	taken
}

@test "ADD waits while the store is restored from a backup: the lease is in the new one" {
	only_cnibox "the Go plugin writes to the directory that was there"
	add c1
	while_waiting 'cp -a net net.backup && mv net net.old && mv net.backup net' ADD c2
	is '.ips[0].address' 10.1.2.3/24
	same 'leases of the store' '10.1.2.2 10.1.2.3' "$(leases)"
	same 'leases of the old one' 10.1.2.2 "$(host sh -c "ls $store.old | grep ^10")"
	add c3
	is '.ips[0].address' 10.1.2.4/24
}

@test "ADD waits while the store is removed, or made anew" {
	only_cnibox "the Go plugin writes to the directory that was there"
	add c1
	while_waiting 'rm -r net' ADD c2
	is '.ips[0].address' 10.1.2.2/24
	same leases 10.1.2.2 "$(leases)"
	rm "$T/go" "$T/held"
	while_waiting 'rm -r net && mkdir net && printf "x\r\neth0" >net/10.1.2.2' ADD c3
	is '.ips[0].address' 10.1.2.3/24
	same leases '10.1.2.2 10.1.2.3' "$(leases)"
}

@test "ADD waits while the store moves to another file system" {
	only_cnibox "the Go plugin writes to the directory that was there"
	add c1
	while_waiting 'cp -a net saved && mount -t tmpfs none net && cp -a saved/. net && rm net/lock' ADD c2
	same leases '10.1.2.2 10.1.2.3' "$(leases)"
	same lease c2 "$(host head -n 1 $store/10.1.2.3 | tr -d '\r')"
}

@test "DEL waits while the store is replaced: the lease in the new one goes" {
	only_cnibox "the Go plugin looks into the directory that was there"
	add c1
	add c2
	while_waiting 'cp -a net net.backup && rm -r net && mv net.backup net' DEL c1
	same leases 10.1.2.3 "$(leases)"
	rm "$T/go" "$T/held"
	while_waiting 'rm -r net' DEL c2
	host test ! -e $store
}

@test "the lock file is replaced while an ADD waits: it waits for the new one" {
	only_cnibox "the Go plugin goes on with the lock that nobody else takes"
	local pid first
	add c1
	hold
	first=$lock_inode
	cni ADD host-local c2 <<<"$(conf)" &
	pid=$!
	wait_for 60 waiting "$first"
	host sh -c "cd $store && : >new && mv new lock"
	spawn host sh -c 'exec 9<$1/lock && flock 9 && echo held >$2/held2
		until [ -e $2/go2 ]; do sleep 0.02; done' sh $store "$T"
	wait_for 60 test -s "$T/held2"
	release_lock
	wait_for 60 waiting "$(host stat -c %i $store/lock)"
	same leases 10.1.2.2 "$(leases)"
	touch "$T/go2"
	wait "$pid"
	same leases '10.1.2.2 10.1.2.3' "$(leases)"
}

# ---- disks ------------------------------------------------------------------------------------

# full HOW: the store's file system is a small tmpfs with a lease of c1, and full.
full() {
	host sh -c "mkdir -p $store && mount -t tmpfs -o size=64k,nr_inodes=40 none $store"
	add c1
	case $1 in
	space) host sh -c "cat /dev/zero >$store/fill 2>/dev/null || :" ;;
	inodes) host sh -c "for i in \$(seq 50); do touch $store/n\$i || break; done 2>/dev/null; :" ;;
	esac
}

@test "a full disk is said to be one, by ADD and by STATUS" {
	only_cnibox "the Go plugin has no STATUS"
	local how
	for how in space inodes; do
		full $how
		fails 5 'cannot write a lease to /var/lib/cni/networks/net.*No space left on device' ADD host-local c2 <<<"$(conf)"
		fails 50 'cannot write to lease store /var/lib/cni/networks/net.*No space left on device' \
			STATUS host-local '' <<<"$(status_conf)"
		same leases 10.1.2.2 "$(leases | xargs -n 1 | grep ^10)"
		ok CHECK host-local c1 <<<"$(conf)"
		del c1
		host umount $store
	done
}

@test "STATUS says that a store that does not exist yet could not be made" {
	only_cnibox "not implemented in Go"
	ok STATUS host-local '' <<<"$(status_conf)"
	host mount -t tmpfs -o size=8k,nr_inodes=1 none /var/lib/cni
	fails 50 'cannot write to lease store .*No space left' STATUS host-local '' <<<"$(status_conf)"
	fails 5 'No space left' ADD host-local c1 <<<"$(conf)"
	host mount -o remount,ro /var/lib/cni
	fails 50 'cannot write to lease store .*Read-only file system' STATUS host-local '' <<<"$(status_conf)"
}

@test "two machines, one store, whole seconds: nothing is given twice and nothing is lost" {
	only_cnibox "there is no index in Go"
	local i c
	host sh -ec "truncate -s 8M /run/disk && mke2fs -q -t ext4 -I 128 /run/disk 2>/dev/null &&
		mkdir -p $store && mount -o loop /run/disk $store" || skip "no ext4 on a loop device here"
	case $(host stat -c %y $store) in *.000000000*) ;; *) skip "this ext4 keeps more than seconds" ;; esac
	# The other machine has a /run of its own.
	printf '#!/bin/sh\nexec unshare -m sh -c '\''mount -t tmpfs none /run/cnibox && mount --bind "$1" /run/cnibox && exec "$2"'\'' sh "%s" "%s"\n' \
		"$T/other" "$CNI_PLUGIN_DIR/host-local" >"$T/there"
	mkdir "$T/other"
	chmod +x "$T/there"
	c=$(conf '{"subnet": "10.1.2.0/28"}')
	for i in 1 2 3 4 5 6; do
		ok ADD host-local h$i <<<"$c"
		ok ADD "$T/there" t$i <<<"$c"
		ok CHECK "$T/there" h$i <<<"$c"
		ok CHECK host-local t$i <<<"$c"
		ok DEL "$T/there" h$i <<<"$c"
		ok DEL host-local t$i <<<"$c"
		same leases '' "$(leases | sed s/lost+found//)"
	done
}

# ---- indexes of networks that are gone --------------------------------------------------------

indexes() { host sh -c 'ls /run/cnibox/host-local 2>/dev/null' | wc -l; }

@test "the index of a network goes with its last lease" {
	only_cnibox "there is none in Go"
	add c1
	add c2
	same indexes 1 "$(indexes)"
	del c1
	same indexes 1 "$(indexes)"
	del c2
	same indexes 0 "$(indexes)"
	add c3
	add c4
	ok GC host-local '' <<<"$(status_conf)"
	same 'indexes after GC' 0 "$(indexes)"
}

@test "the index of a network whose directory was removed goes with the next call that sees it" {
	only_cnibox "there is none in Go"
	local other
	other=$(conf "$CONF" '{"name": "other", "cniVersion": "1.1.0"}')
	for call in DEL GC ADD; do
		add c1
		add c1 eth0 "$other"
		same indexes 2 "$(indexes)"
		host rm -r $store
		case $call in
		DEL) del c1 ;;
		GC) ok GC host-local '' <<<"$(jq -c '. + {"cni.dev/valid-attachments": [{"containerID": "c1", "ifname": "eth0"}]}' <<<"$other")" ;;
		ADD) add c2 && same 'the new one is there' 2 "$(indexes)" && del c2 ;;
		esac
		same "indexes after $call" 1 "$(indexes)"
		del c1 eth0 "$other"
	done
}

@test "indexes that go while others ADD cost nobody his address" {
	only_cnibox "there is none in Go"
	local i pids=()
	for i in $(seq 12); do
		conf | host env CNI_COMMAND=ADD CNI_CONTAINERID=p$i CNI_NETNS=/run/netns/p CNI_IFNAME=eth0 CNI_PATH=/x \
			"$CNI_PLUGIN_DIR/host-local" >"$T/many-$i" 2>&1 3>&- &
		pids+=($!)
		host rm -f /run/cnibox/host-local/*.index
		ok GC host-local '' <<<"$(conf "$CONF" '{"name": "other", "cniVersion": "1.1.0"}')"
	done
	wait "${pids[@]}"
	same 'addresses' 12 "$(cat "$T"/many-* | jq -r '.ips[0].address' | sort -u | wc -l)"
	for i in $(seq 12); do
		ok CHECK host-local p$i <<<"$(conf)"
		del p$i
	done
	same leases '' "$(leases)"
	same indexes 0 "$(indexes)"
}

# ---- addresses of an earlier boot -------------------------------------------------------------

@test "a boot id that is not the kernel's own is none: nothing is taken from the living" {
	only_cnibox "Go has no record of the boot"
	local c
	c=$(conf '{"subnet": "10.1.2.0/30"}')
	boot_of() {
		host sh -c 'umount /proc/sys/kernel/random/boot_id 2>/dev/null
			echo $1-2222-4333-8444-555555555555 >/run/boot_id
			mount --bind /run/boot_id /proc/sys/kernel/random/boot_id' sh "$1"
	}
	boot_of 11111111
	add c1 eth0 "$c"
	boot_of 22222222
	fails 50 'no IP addresses' ADD host-local c2 <<<"$c"
	host umount /proc/sys/kernel/random/boot_id
	fails 50 'no IP addresses' ADD host-local c2 <<<"$c"
	boot_of 33333333
	fails 50 'no IP addresses' ADD host-local c2 <<<"$c"
	ok CHECK host-local c1 <<<"$c"
}

@test "a range whose first 512 addresses are nothing but its gateway has old addresses behind it" {
	only_cnibox "Go has no record of the boot"
	local c
	c=$(conf '{"ranges": [[{"subnet": "10.1.0.0/22", "rangeStart": "10.1.1.255", "gateway": "10.1.1.255",
		"rangeEnd": "10.1.2.1"}]]}')
	add c1 eth0 "$c"
	add c2 eth0 "$c"
	same leases '10.1.2.0 10.1.2.1' "$(leases)"
	reboot
	ok STATUS host-local '' <<<"$(jq -c '.cniVersion = "1.1.0"' <<<"$c")"
	add c3 eth0 "$c"
	is '.ips[0].address' 10.1.2.0/22
}

# ---- resolvConf -------------------------------------------------------------------------------

@test "resolvConf may be anything that can be read" {
	add c1 eth0 "$(conf '{"subnet": "10.1.2.0/24", "resolvConf": "/dev/null"}')"
	is '.dns // {}' '{}'
	add c2 eth0 "$(conf '{"subnet": "10.1.2.0/24", "resolvConf": "/proc/self/status"}')"
	host mkfifo /run/fifo
	spawn host sh -c 'echo nameserver 10.9.9.9 >/run/fifo'
	add c3 eth0 "$(conf '{"subnet": "10.1.2.0/24", "resolvConf": "/run/fifo"}')"
	is .dns.nameservers '["10.9.9.9"]'
}

@test "a resolvConf that never ends, or never begins, is an error" {
	only_cnibox "the Go plugin waits for ever"
	host mkfifo /run/fifo
	CALL_TIMEOUT=8 fails 5 'read /run/fifo.*timed out' ADD host-local c1 <<<"$(conf '{"subnet": "10.1.2.0/24", "resolvConf": "/run/fifo"}')"
	fails 5 'read /dev/zero.*too large' ADD host-local c1 <<<"$(conf '{"subnet": "10.1.2.0/24", "resolvConf": "/dev/zero"}')"
	fails 5 'read /run: Is a directory|read /run' ADD host-local c1 <<<"$(conf '{"subnet": "10.1.2.0/24", "resolvConf": "/run"}')"
	host test ! -e $store
}
