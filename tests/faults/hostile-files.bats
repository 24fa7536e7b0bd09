# Files that are not what they should be: empty, torn, gigantic, unreadable, of another kind. See
# hostile.bats.

load hostile

# ---- files ------------------------------------------------------------------------------------

@test "anything may lie in the lease store" {
	local k f
	for f in 10.1.0.2 lock last_reserved_ip.0 .lease.tmp; do
		for k in $KINDS; do
			put "$k" "/var/lib/cni/networks/net/$f"
			ends ADD host-local c1 <<<"$(conf host-local)"
			precious "ADD with $f as $k"
			ends DEL host-local c1 <<<"$(conf host-local)"
			ends GC host-local c1 <<<"$(conf host-local)"
			precious "DEL with $f as $k"
			host rm -rf /var/lib/cni/networks/net /run/cnibox "$T/target"
		done
	done
	# One that is in the way costs one address, not the network.
	put directory /var/lib/cni/networks/net/10.1.0.2
	ok ADD host-local c1 <<<"$(conf host-local)"
	is .ips[0].address 10.1.0.3/24
}

@test "the store, or what leads to it, is something else" {
	local k d
	for d in /var/lib/cni/networks/net /var/lib/cni/networks; do
		for k in empty huge fifo loop; do
			put "$k" "$d"
			refused ADD host-local c1 <<<"$(conf host-local)"
			ends DEL host-local c1 <<<"$(conf host-local)"
			refused ADD bridge c1 <<<"$(conf bridge)"
			host rm -rf "$d"
		done
	done
	nothing_left
}

@test "an index that is anything" {
	local k name
	ok ADD host-local c1 <<<"$(conf host-local)"
	name=$(host sh -c 'echo /run/cnibox/host-local/*.index')
	for k in $KINDS; do
		put "$k" "$name"
		fails 102 . ADD host-local c1 <<<"$(conf host-local)"
		precious "index as $k"
		ok DEL host-local c1 <<<"$(conf host-local)"
		ok ADD host-local c1 <<<"$(conf host-local)"
		precious "index as $k"
		host rm -rf "$name" "$T/target"
	done
	for k in $KINDS; do
		put "$k" /run/cnibox/host-local
		ok DEL host-local c1 <<<"$(conf host-local)"
		ok ADD host-local c1 <<<"$(conf host-local)"
		host rm -rf /run/cnibox
	done
}

@test "a backup that is anything" {
	local k was
	inside c1 ip link add eth0 type veth peer name other
	was=$(inside c1 cat /proc/net/dev | wc -l)
	for k in $KINDS; do
		put "$k" /run/cni/tuning/c1_eth0.json
		ends ADD tuning c1 <<<"$(conf tuning)"
		precious "ADD with a backup as $k"
		ends DEL tuning c1 <<<"$(conf tuning)"
		precious "DEL with a backup as $k"
		ends GC tuning c1 <<<"$(conf tuning)"
		put "$k" /run/cni/tuning/.c1_eth0.json.tmp
		ends ADD tuning c1 <<<"$(conf tuning)"
		precious "ADD with a temporary file as $k"
		ends DEL tuning c1 <<<"$(conf tuning)"
		host rm -rf /run/cni/tuning "$T/target"
	done
	for k in empty huge fifo loop; do
		put "$k" /run/cni/tuning
		refused ADD tuning c1 <<<"$(conf tuning)"
		host rm -rf /run/cni/tuning
	done
	same links "$was" "$(inside c1 cat /proc/net/dev | wc -l)"
}

@test "an allowlist that is anything" {
	local k conf
	conf=$(conf tuning '"sysctl":{"net.core.somaxconn":"500"}')
	inside c1 ip link add eth0 type veth peer name other
	for k in torn binary huge directory fifo loop symlink; do
		put "$k" /etc/cni/tuning/allowlist.conf
		refused ADD tuning c1 <<<"$conf"
	done
	host sh -c 'rm -rf /etc/cni/tuning; mkdir /etc/cni/tuning; printf "(a*)*%.0s" 1 2 3 4 5 6 7 8 9 >/etc/cni/tuning/allowlist.conf'
	ends ADD tuning c1 <<<"$conf"
}

@test "a resolvConf that is anything" {
	local k
	for k in binary huge directory fifo loop dangling; do
		put "$k" "$T/resolv"
		ends ADD host-local c1 <<<"$(conf host-local "\"ipam\":{\"type\":\"host-local\",\"subnet\":\"10.1.0.0/24\",\"resolvConf\":\"$T/resolv\"}")"
		[ "$status" = 0 ] && [ "$k" != binary ] && show "resolvConf as $k should be an error"
		ok DEL host-local c1 <<<"$(conf host-local)"
		rm -rf "$T/resolv"
	done
	nothing_left
}

@test "a cache entry, a lock and a network file that are anything" {
	need_applet cnitool
	local k id
	host sh -c 'cat >/etc/cni/net.d/net.conflist' <<<"{\"cniVersion\":\"1.1.0\",\"name\":\"net\",\"plugins\":[{$BR,\"ipam\":$IPAM}]}"
	tool add net /run/netns/c1
	id=$(host sh -c 'ls /var/lib/cni/results')
	tool del net /run/netns/c1
	for k in $KINDS; do
		put "$k" "/var/lib/cni/results/$id"
		tool add net /run/netns/c1
		[ "$status" -le 1 ] || show "add with a cache entry as $k"
		precious "add with a cache entry as $k"
		tool check net /run/netns/c1
		[ "$status" -le 1 ] || show "check with a cache entry as $k"
		put "$k" "/var/lib/cni/results/$id"
		tool del net /run/netns/c1
		[ "$status" -le 1 ] || show "del with a cache entry as $k"
		precious "del with a cache entry as $k"
		nothing_left cni0
		host rm -rf "/var/lib/cni/results/$id" "$T/target"
		put "$k" "/var/lib/cni/results/.$id.tmp"
		tool gc --all net
		[ "$status" -le 1 ] || show "gc with a temporary file as $k"
		tool add net /run/netns/c1
		# A directory of that name is in the way, and says so.
		[ "$status" = 0 ] || [ "$k" = directory ] || show "add with a temporary file as $k"
		precious "add with a temporary file as $k"
		tool del net /run/netns/c1
		[ "$status" = 0 ] || show "del with a temporary file as $k"
		host rm -rf /var/lib/cni/results "$T/target"
	done
	for k in $KINDS; do
		put "$k" /etc/cni/net.d/00.conflist
		tool add net /run/netns/c1
		[ "$status" = 0 ] || show "add beside a network file as $k"
		tool del net /run/netns/c1
		[ "$status" = 0 ] || show "del beside a network file as $k"
		host rm -rf /etc/cni/net.d/00.conflist "$T/target"
	done
}
