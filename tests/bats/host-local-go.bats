# host-local and the Go plugin on one store, many at once, and killed.

load helpers
load host-local

setup() { host_local_setup; }
teardown() { sandbox_end; }

# ---- with the Go plugin on one store ----------------------------------------------------------

@test "what Go gave we know, and the other way round" {
	need_go
	local c
	c=$(conf '{"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "fd00:0:0:1::/64", "rangeStart": "fd00:0:0:1::10"}]]}')
	ok ADD "$go" g1 <<<"$c"
	is '[.ips[].address]' '["10.1.2.2/24", "fd00:0:0:1::10/64"]'
	add c1 eth0 "$c"
	is '[.ips[].address]' '["10.1.2.3/24", "fd00:0:0:1::11/64"]'
	ok ADD "$go" g2 <<<"$c"
	is '[.ips[].address]' '["10.1.2.4/24", "fd00:0:0:1::12/64"]'
	ok CHECK host-local g1 <<<"$c"
	ok CHECK "$go" c1 <<<"$c"
	fails 102 'duplicate allocation' ADD host-local g1 <<<"$c"
	fails any 'duplicate allocation' ADD "$go" c1 <<<"$c"
	del g1 eth0 "$c"
	ok DEL "$go" c1 <<<"$c"
	same leases '10.1.2.4 fd00:0:0:1::12' "$(leases)"
	fails 101 'Failed to find' CHECK host-local c1 <<<"$c"
	fails any 'Failed to find' CHECK "$go" g1 <<<"$c"
	add c2 eth0 "$c"
	is '[.ips[].address]' '["10.1.2.5/24", "fd00:0:0:1::13/64"]'
	ok ADD "$go" g3 <<<"$c"
	del g3 eth0 "$c"
	ok DEL "$go" c2 <<<"$c"
	del g2 eth0 "$c"
	same leases '' "$(leases)"
}

@test "the files of both are the same, byte for byte" {
	need_go
	local c d
	c=$(conf '{"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "fd00::/64"}]]}')
	for d in "$go" host-local; do
		host rm -rf $store
		ok ADD "$d" c1 net7 <<<"$c"
		ok ADD "$d" c2 net7 <<<"$c"
		ok DEL "$d" c1 net7 <<<"$c"
		host sh -c "cd $store && for f in *; do echo \$f; od -An -tx1 \$f; done" >"$T/files-${d##*/}-$((++n))"
		host stat -c %a $store/lock >>"$T/files-${d##*/}-$n"
	done
	cmp "$T"/files-*-1 "$T"/files-*-2
}

# many N PLUGIN...: N ADDs at once, the plugins in turn. Results in $T/many-*.
many() {
	local i n=$1
	shift
	for i in $(seq "$n"); do
		conf | host env CNI_COMMAND=ADD CNI_CONTAINERID="m$i" CNI_NETNS=/run/netns/m CNI_IFNAME=eth0 \
			CNI_PATH=/x "${@:i % $# + 1:1}" >"$T/many-$i" 2>&1 3>&- &
	done
	wait $(jobs -p | grep -vx "$HOLDER")
	same 'different addresses' "$n" "$(cat "$T"/many-* | jq -r '.ips[0].address' | sort -u | wc -l)"
	same 'leases' "$n" "$(leases | wc -w)"
}

@test "the lock is the flock on the file lock, and it is waited for" {
	local pid inode
	add c1
	inode=$(host stat -c %i $store/lock)
	spawn host sh -c 'exec 9<$1/lock && flock 9 && echo held >$2/held
		until [ -e $2/go ]; do sleep 0.02; done' sh $store "$T"
	wait_for 60 test -s "$T/held"
	cni ADD host-local c2 <<<"$(conf)" &
	pid=$!
	wait_for 60 waiting "$inode"
	same leases 10.1.2.2 "$(leases)"
	touch "$T/go"
	wait "$pid"
	same leases '10.1.2.2 10.1.2.3' "$(leases)"
}

@test "forty at once get forty addresses" {
	many 40 "$CNI_PLUGIN_DIR/host-local"
}

@test "forty at once with the Go plugin get forty addresses" {
	need_go
	many 40 "$CNI_PLUGIN_DIR/host-local" "$go"
	for i in $(seq 40); do
		ok CHECK host-local m$i <<<"$(conf)"
	done
}

# turns N: the life of three attachments, each verb by the other implementation than the one before.
turns() {
	local n=$1 i id verb who=("$CNI_PLUGIN_DIR/host-local" "$go")
	for i in 1 2 3; do
		id=t$1-$i
		for verb in ADD CHECK DEL ADD; do
			n=$((n + 1))
			conf | host env CNI_COMMAND=$verb "CNI_CONTAINERID=$id" CNI_NETNS=/run/netns/t CNI_IFNAME=eth0 \
				CNI_PATH=/x "${who[n % 2]}" >"$T/turn-$id-$verb" 2>&1 3>&- ||
				echo "$verb of $id failed: $(<"$T/turn-$id-$verb")" >>"$T/turns-failed"
		done
	done
}

@test "both implementations mixed on one store, thirty-two at once" {
	need_go
	local i pids=()
	for i in $(seq 32); do
		turns "$i" &
		pids+=($!)
	done
	wait "${pids[@]}"
	[ ! -e "$T/turns-failed" ] || show "$(<"$T/turns-failed")"
	same leases 96 "$(leases | wc -w)"
	same 'different addresses' 96 "$(cat "$T"/turn-*-ADD | jq -r '.ips[0].address' | sort -u | wc -l)"
	for i in $(seq 32); do
		ok CHECK host-local "t$i-2" <<<"$(conf)"
		del "t$i-1"
		ok DEL "$go" "t$i-2" <<<"$(conf)"
		del "t$i-3"
	done
	same 'leases after DEL' '' "$(leases)"
}

# meddle: puts leases of others in and takes them out again, until told to stop.
meddle() {
	spawn host bash -c 'cd "$1" && for ((i = 0; i < 20000; i++)); do
			[ ! -e "$2/stop" ] || break
			printf "other%d\r\neth0" $((i % 20)) >.new && mv .new 10.1.2.$((200 + i % 20))
			rm -f 10.1.2.$((200 + (i + 7) % 20))
		done; echo >"$2/stopped"' meddle $store "$T"
}

@test "killed at random moments, under a store that others change, nobody loses a lease" {
	only_cnibox "the Go plugin leaves empty leases, which no DEL finds"
	local i pid id addr
	add first
	meddle
	for i in $(seq 60); do
		conf | CNI_COMMAND=ADD CNI_CONTAINERID=k$i CNI_NETNS=/run/netns/k CNI_IFNAME=eth0 CNI_PATH=/x \
			nsenter -t "$HOLDER" -m -n -- "$CNI_PLUGIN_DIR/host-local" >"$T/killed-$i" 2>&1 3>&- &
		pid=$!
		sleep 0.00$((RANDOM % 6))$((RANDOM % 10))
		kill -KILL "$pid" 2>/dev/null || :
		wait "$pid" || :
		[ $((i % 3)) != 0 ] || add s$i
		[ $((i % 5)) != 0 ] || del s$((i - i % 3))
	done
	touch "$T/stop"
	wait_for 60 test -e "$T/stopped"
	# Whoever holds an address by the store is found by the index, and nobody else is.
	same 'addresses held twice' '' "$(host sh -c "cd $store && for f in 10.*; do cat \$f; echo; done" | tr -d '\r' |
		grep -v ^eth0 | sort | uniq -d)"
	for addr in $(leases); do
		id=$(host head -n 1 "$store/$addr" | tr -d '\r')
		ok CHECK host-local "$id" <<<"$(conf)"
		del "$id"
		host test ! -e "$store/$addr"
	done
	same 'leases after DEL' '' "$(leases)"
}
