# host-local: what others put into the store, the index beside it, and leases of an earlier boot.

load helpers
load host-local

setup() { host_local_setup; }
teardown() { sandbox_end; }

# ---- other people's files ---------------------------------------------------------------------

@test "anything named like an address blocks it" {
	lease 10.1.2.2 'somebody\n'
	host mkdir $store/10.1.2.3
	host ln -s nowhere $store/10.1.2.4
	lease 10.1.2.5 'c1\neth0'
	lease 010.1.2.6 x
	lease .10.1.2.6.tmp x
	add c1
	is '.ips[0].address' '10.1.2.6/24'
}

@test "an empty lease is what a crash left: the address is free" {
	only_cnibox "in Go it is lost for ever"
	local c
	c=$(conf '{"ranges": [[{"subnet": "10.1.2.0/29"}]]}')
	lease 10.1.2.2 ''
	add c1 eth0 "$c"
	is '.ips[0].address' '10.1.2.2/29'
	same lease c1 "$(host head -n 1 $store/10.1.2.2 | tr -d '\r')"
	lease 10.1.2.5 ''
	ok ADD host-local c2 <<<"$(jq -c '.args.cni.ips = ["10.1.2.5"]' <<<"$c")"
	is '.ips[0].address' '10.1.2.5/29'
}

@test "leases made and removed behind our back count at once" {
	add c1
	lease 10.1.2.3 'other\r\neth0'
	add c2
	is '.ips[0].address' '10.1.2.4/24'
	ok CHECK host-local other <<<"$(conf)"
	del other
	host rm $store/10.1.2.2
	fails 101 'Failed to find' CHECK host-local c1 <<<"$(conf)"
	add c1
	lease 10.1.2.9 'c3\r\neth0'
	fails 102 '10.1.2.9 has been allocated to c3, duplicate allocation' ADD host-local c3 <<<"$(conf)"
}

@test "a lease rewritten in place is never freed for its old holder" {
	add c1
	add c2
	lease 10.1.2.2 'c9\r\neth0'
	del c1
	same leases '10.1.2.2 10.1.2.3' "$(leases)"
	del c9
	same leases 10.1.2.3 "$(leases)"
}

@test "a store that is removed and made again is a new one" {
	add c1
	add c2
	host rm -r $store
	add c3
	is '.ips[0].address' '10.1.2.2/24'
	fails 101 'Failed to find' CHECK host-local c1 <<<"$(conf)"
}

# ---- the index --------------------------------------------------------------------------------

@test "an index that is missing, cut, wrong or not possible changes no answer" {
	only_cnibox "there is none in Go"
	local how i=2 file
	add c$i
	for how in 'rm $1' 'truncate -s 100 $1' ': >$1' 'truncate -s +4096 $1' \
		'head -c 20000 /dev/urandom >$1' 'dd if=/dev/urandom of=$1 bs=64 count=8 seek=3 conv=notrunc' \
		'dd if=/dev/zero of=$1 bs=64 count=100 seek=2 conv=notrunc' 'rm $1; mkdir $1' \
		'rm -r /run/cnibox/host-local; touch /run/cnibox/host-local' \
		'rm -r /run/cnibox; mount -t tmpfs -o ro none /run; echo $1'; do
		file=$(host sh -c 'echo /run/cnibox/host-local/*.index')
		host sh -c "$how" sh "$file" 2>/dev/null
		ok CHECK host-local c$i <<<"$(conf)"
		fails 102 duplicate ADD host-local c$i <<<"$(conf)"
		i=$((i + 1))
		add c$i
		is '.ips[0].address' "10.1.2.$i/24"
		add gone$i
		del gone$i
		lease last_reserved_ip.0 10.1.2.$i
	done
	same 'rounds' 12 $i
}

@test "the index is private and goes unnoticed" {
	only_cnibox "there is none in Go"
	add c1
	same 'mode of the index' 600 "$(host sh -c 'stat -c %a /run/cnibox/host-local/*.index')"
	del c1
	same 'store' 'last_reserved_ip.0 lock' "$(host ls -A $store | xargs)"
	nothing_left
}

@test "a call changes no more of the store than one lease and the marker" {
	only_cnibox "the Go plugin looks at every lease"
	lease 10.1.2.200 'x\r\neth0'
	add c1
	CNIBOX_TRACE=$T/trace add c2
	same steps "write lease, lock, lease 10.1.2.3, write last_reserved_ip.0" \
		"$(awk -F' [|] ' '$2 == "file" {printf "%s%s", s, $3; s = ", "}' "$T/trace")"
}

# ---- reboots ----------------------------------------------------------------------------------

@test "an address held since an earlier boot is used when no other is left, in order" {
	only_cnibox "Go has no record of the boot"
	local c id
	c=$(conf '{"ranges": [[{"subnet": "10.1.2.0/29"}]]}')
	for id in a b c; do
		add $id eth0 "$c"
	done
	reboot
	add d eth0 "$c"
	is '.ips[0].address' 10.1.2.5/29
	add e eth0 "$c"
	is '.ips[0].address' 10.1.2.6/29
	ok STATUS host-local '' <<<"$(jq -c '.cniVersion = "1.1.0"' <<<"$c")"
	fails 50 'no IP addresses available' ADD host-local f <<<"$(jq -c '.ipam.bootReclaim = false' <<<"$c")"
	fails 50 'no IP addresses available' STATUS host-local '' \
		<<<"$(jq -c '.cniVersion = "1.1.0" | .ipam.bootReclaim = false' <<<"$c")"
	for id in f:2 g:3 h:4; do
		add ${id%:*} eth0 "$c"
		is '.ips[0].address' "10.1.2.${id#*:}/29"
	done
	fails 50 'no IP addresses available' ADD host-local i <<<"$c"
	# The former holder is gone for good: its late DEL frees nothing.
	del a eth0 "$c"
	same leases '10.1.2.2 10.1.2.3 10.1.2.4 10.1.2.5 10.1.2.6' "$(leases)"
}

@test "an address held since an earlier boot may be requested" {
	only_cnibox "Go has no record of the boot"
	local c
	c=$(conf "$CONF" '{"args": {"cni": {"ips": ["10.1.2.2"]}}}')
	add old
	reboot
	fails 102 'not available' ADD host-local new <<<"$(jq -c '.ipam.bootReclaim = false' <<<"$c")"
	add new eth0 "$c"
	is '.ips[0].address' 10.1.2.2/24
	fails 102 'not available' ADD host-local newer <<<"$c"
}

@test "after a reboot an attachment gets its address again" {
	only_cnibox "in Go a container that is started again is a duplicate until DEL"
	add c1
	add c2
	reboot
	fails 102 duplicate ADD host-local c1 <<<"$(conf | jq -c '.ipam.bootReclaim = false')"
	add c1
	is '.ips[0].address' 10.1.2.2/24
	same leases '10.1.2.2 10.1.2.3' "$(leases)"
	fails 102 duplicate ADD host-local c1 <<<"$(conf)"
}

@test "leases of unknown age are not reclaimed until a boot later" {
	only_cnibox "Go has no record of the boot"
	local c
	c=$(conf '{"ranges": [[{"subnet": "10.1.2.0/30"}]]}')
	lease 10.1.2.2 'go\r\neth0'
	fails 50 'no IP addresses' ADD host-local c1 <<<"$c"
	reboot
	add c1 eth0 "$c"
	reboot
	lease 10.1.2.2 'a note, not a lease'
	fails 50 'no IP addresses' ADD host-local c2 <<<"$c"
}
