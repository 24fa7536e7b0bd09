# What could not be looked at may well be there, and what a path leads to now may be somebody else's.
# Single system calls are made to fail, by `attack inject` (ATTACK), or single allocations (STARVE).

load ../bats/helpers
load ../bats/cnitool

setup() {
	sandbox
	only_cnibox "single system calls are made to fail"
	[ -x "${ATTACK:-}" ] || skip "no ATTACK: tests/faults/run builds it"
	netns a && netns b
	tool_setup
	# The plugin PLUGIN, to which STRIKE is done.
	printf '#!/bin/sh\nexec "%s" inject --main $STRIKE -- "%s/$PLUGIN"\n' "$ATTACK" "$CNI_PLUGIN_DIR" >"$T/struck"
	chmod +x "$T/struck"
}
teardown() { sandbox_end; }

# struck STRIKE VERB PLUGIN ID <config
struck() {
	local -x STRIKE=$1 PLUGIN=$3
	cni "$2" "$T/struck" "$4"
}

# points VERB PLUGIN ID <config: how many system calls that makes; the call is carried out.
points() {
	struck '' "$@"
	POINTS=$(grep -c '^[0-9]* [a-z]' <<<"$stderr")
	[ "$POINTS" -gt 10 ] || show "$* makes $POINTS system calls"
}

PREV() { echo "{\"cniVersion\":\"1.0.0\",\"interfaces\":[{\"name\":\"eth0\",\"sandbox\":\"/run/netns/$1\"}],\"ips\":[{\"address\":\"10.1.2.$2/24\",\"interface\":0}]}"; }
# mapped CONTAINER HOST-NUMBER PORT
mapped() { echo "{\"cniVersion\":\"1.1.0\",\"name\":\"n\",\"type\":\"portmap\",\"runtimeConfig\":{\"portMappings\":[{\"hostPort\":$3,\"containerPort\":80}]},\"prevResult\":$(PREV "$1" "$2")}"; }
BRIDGE='{"cniVersion":"1.1.0","name":"n","type":"bridge","bridge":"br0","isGateway":true,"ipam":{"type":"host-local","subnet":"10.9.0.0/24"}}'

@test "portmap: a holder that cannot be looked at keeps its host port" {
	local i error
	ok ADD portmap a <<<"$(mapped a 3 8080)"
	points ADD portmap b <<<"$(mapped b 4 8080)"
	for error in EMFILE EIO; do
		for ((i = 1; i <= POINTS; i++)); do
			struck "--fail $i=$error" ADD portmap b <<<"$(mapped b 4 8080)"
			[ "$status" -eq 1 ] || show "ADD took the port of a living container when call $i failed with $error"
		done
	done
	ok CHECK portmap a <<<"$(mapped a 3 8080)"
}

@test "portmap: a record stays as long as an element of it could not be asked for" {
	local i saved left
	ok ADD portmap b <<<"$(mapped b 4 81)"
	ok ADD portmap a <<<"$(mapped a 3 80)"
	# The first transaction of DEL is refused for it; the second asks for each.
	host nft delete element inet cnibox_portmap masq4_24 '{ 10.1.2.0 . 10.1.2.3 . tcp . 80 }'
	saved=$(host nft list table inet cnibox_portmap)
	points DEL portmap a <<<"$(mapped a 3 80)"
	for ((i = POINTS / 3; i <= POINTS; i++)); do
		host nft delete table inet cnibox_portmap
		host nft -f - <<<"$saved"
		struck "--fail $i=ENOMEM" DEL portmap a <<<"$(mapped a 3 80)"
		[ "$status" -eq 0 ] || ok DEL portmap a <<<"$(mapped a 3 80)"
		left=$(host nft list table inet cnibox_portmap | grep 'n a eth0' || :)
		[ -z "$left" ] || show "call $i: left is $left"
	done
}

@test "bridge: a repeated DEL does not take the interface of the next container under that path" {
	local i error
	ok ADD bridge a <<<"$BRIDGE"
	ok DEL bridge a <<<"$BRIDGE"
	NETNS=/run/netns/a ok ADD bridge next <<<"$BRIDGE"
	points DEL bridge a <<<"$BRIDGE"
	for error in ENOMEM EIO; do
		for ((i = 1; i <= POINTS; i++)); do
			struck "--fail $i=$error" DEL bridge a <<<"$BRIDGE"
			inside a ip link show eth0 >/dev/null || show "eth0 of the next one went when call $i failed with $error"
		done
	done
}

@test "bandwidth: a repeated DEL does not take the limits of the next container under that path" {
	local result limits before
	limits() { jq -c '{cniVersion,name:"n",type:"bandwidth",prevResult:.,runtimeConfig:{bandwidth:{ingressRate:8000000,ingressBurst:800000,egressRate:8000000,egressBurst:800000}}}' <<<"$1"; }
	ok ADD bridge a <<<"$BRIDGE"
	result=$output
	ok ADD bandwidth a <<<"$(limits "$result")"
	ok DEL bandwidth a <<<"$(limits "$result")"
	ok DEL bridge a <<<"$BRIDGE"
	NETNS=/run/netns/a ok ADD bridge next <<<"$BRIDGE"
	before=$(limits "$output")
	NETNS=/run/netns/a ok ADD bandwidth next <<<"$before"
	ok DEL bandwidth a <<<"$(limits "$result")"
	NETNS=/run/netns/a ok CHECK bandwidth next <<<"$before"
}

@test "bandwidth: an ADD again that cannot look for its redirect makes no second one" {
	local i conf
	ok ADD bridge a <<<"$BRIDGE"
	conf=$(jq -c '{cniVersion,name:"n",type:"bandwidth",prevResult:.,runtimeConfig:{bandwidth:
		{egressRate:8000000,egressBurst:800000}}}' <<<"$output")
	ok ADD bandwidth a <<<"$conf"
	points ADD bandwidth a <<<"$conf"
	for ((i = 1; i <= POINTS; i++)); do
		struck "--fail $i=EIO" ADD bandwidth a <<<"$conf"
		same "redirects after call $i failed" 1 \
			"$(host sh -c 'for l in /sys/class/net/veth*; do tc filter show dev ${l##*/} parent ffff:; done' | grep -c mirred)"
	done
	ok CHECK bandwidth a <<<"$conf"
}

@test "bridge: of two ADDs of one container at once the first wins, and keeps what it has" {
	local i n won pids
	for i in 1 2 3 4 5 6 7 8; do
		won=0 pids=()
		for n in 1 2; do
			{
				cni ADD bridge a <<<"$BRIDGE"
				echo "$status" >"$T/status.$n"
			} &
			pids+=($!)
		done
		wait "${pids[@]}"
		for n in 1 2; do [ "$(<"$T/status.$n")" != 0 ] || won=$((won + 1)); done
		[ "$won" -le 1 ] || show "round $i: both succeeded"
		[ "$won" = 0 ] || inside a ip link show eth0 >/dev/null || show "round $i: eth0 is gone"
		ok DEL bridge a <<<"$BRIDGE"
		[ -z "$(host ip link show br0 2>/dev/null)" ] || host ip link del br0
		nothing_left
	done
}

@test "bridge: a bridge that somebody else makes at this moment is not ours" {
	host sh -c 'command -v strace' >/dev/null || skip "no strace"
	local log=$T/log nth slow
	ok ADD bridge a <<<"$BRIDGE"
	ok DEL bridge a <<<"$BRIDGE"
	host ip link del br0
	printf '#!/bin/sh\nexec strace -o "%s" -e trace=sendto $DELAY "%s/bridge"\n' "$log" "$CNI_PLUGIN_DIR" >"$T/slow"
	chmod +x "$T/slow"
	cni ADD "$T/slow" a <<<"$BRIDGE"
	[ "$status" -eq 0 ] || skip "strace cannot run here"
	nth=$(grep sendto "$log" | grep -n -m 1 -E 'RTM_NEWLINK|nlmsg_type=0x10[, ]' | cut -d: -f1)
	ok DEL bridge a <<<"$BRIDGE"
	host ip link del br0
	rm "$log"
	DELAY="-e inject=sendto:delay_enter=1500000:when=${nth:-1}" cni ADD "$T/slow" a <<<"$BRIDGE" &
	slow=$!
	wait_for 60 test -s "$log"
	host ip link add br0 type bridge
	wait $slow || :
	ok DEL bridge a <<<"$BRIDGE"
	ok GC bridge '' <<<"${BRIDGE%\}},\"cni.dev/valid-attachments\":[]}"
	host ip link show br0 >/dev/null || show "GC removed somebody else's bridge"
}

@test "bridge: the MAC filter's base chain goes, whenever DEL is killed" {
	local i conf=${BRIDGE/\"isGateway\":true/\"macspoofchk\":true}
	ok ADD bridge a <<<"$conf"
	points DEL bridge a <<<"$conf"
	for ((i = POINTS / 3; i <= POINTS; i++)); do
		ok ADD bridge a <<<"$conf"
		struck "--kill $i" DEL bridge a <<<"$conf"
		ok DEL bridge a <<<"$conf"
		[ -z "$(host nft list ruleset)" ] || show "killed at call $i: $(host nft list ruleset)"
	done
}

@test "tuning: a backup is forgotten only when the link has what it had" {
	local i mac conf file=/run/cni/tuning/a_eth0.json
	host sh -c 'ip link add d0 type veth peer name p0 && ip link set d0 netns a name eth0 &&
		ip -n a link set eth0 address 02:00:00:00:00:01'
	conf="{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"type\":\"tuning\",\"mac\":\"02:00:00:00:00:99\",\"prevResult\":$(PREV a 3)}"
	ok ADD tuning a <<<"$conf"
	points DEL tuning a <<<"$conf"
	for ((i = 1; i <= POINTS; i++)); do
		ok ADD tuning a <<<"$conf"
		struck "--fail $i=EMFILE" DEL tuning a <<<"$conf"
		mac=$(inside a ip -j link show eth0 | jq -r '.[0].address')
		[ "$mac" = 02:00:00:00:00:01 ] || host test -e $file || show "call $i: $mac, and no backup"
		ok DEL tuning a <<<"$conf"
		same "MAC address after call $i" 02:00:00:00:00:01 "$(inside a ip -j link show eth0 | jq -r '.[0].address')"
	done
}

@test "tuning: an ADD that is undone leaves the backup of the one before it" {
	local i first second file=/run/cni/tuning/a_eth0.json before
	host sh -c 'ip link add d0 type veth peer name p0 && ip link set d0 netns a name eth0'
	first="{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"type\":\"tuning\",\"mac\":\"02:00:00:00:00:99\",\"prevResult\":$(PREV a 3)}"
	second="{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"type\":\"tuning\",\"mtu\":2000000000,\"prevResult\":$(PREV a 3)}"
	ok ADD tuning a <<<"$first"
	before=$(host jq -r .mac $file)
	points ADD tuning a <<<"$second"
	for ((i = 1; i <= POINTS; i++)); do
		struck "--fail $i=EMFILE" ADD tuning a <<<"$second"
		[ "$status" -eq 1 ] || show "an MTU of 2000000000"
		same "backup after call $i" "$before" "$(host jq -r .mac $file)"
	done
}

@test "our own namespace is not taken for another because it could not be looked at" {
	local i conf='{"cniVersion":"1.0.0","name":"lo","type":"loopback"}'
	host ip link set lo down
	NETNS=/proc/self/ns/net points ADD loopback a <<<"$conf"
	for ((i = 1; i <= POINTS; i++)); do
		NETNS=/proc/self/ns/net struck "--fail $i=EMFILE" ADD loopback a <<<"$conf"
		[ "$status" -eq 1 ] || show "call $i: it succeeded"
		host_is '.[0].flags | index("UP")' null ip -j link show lo
	done
}

@test "loopback: addresses that cannot be listed are not missing" {
	local i conf='{"cniVersion":"1.0.0","name":"lo","type":"loopback"}'
	ok ADD loopback a <<<"$conf"
	conf=$(jq -c --argjson p "$output" '.prevResult = $p' <<<"$conf")
	points CHECK loopback a <<<"$conf"
	for ((i = 1; i <= POINTS; i++)); do
		struck "--fail $i=EIO" CHECK loopback a <<<"$conf"
		[ "$status" -eq 0 ] || holds '.code != 101'
	done
}

@test "cnitool: a living attachment is not added again, here or elsewhere, seen or not" {
	local i conf
	conf="{\"cniVersion\":\"1.1.0\",\"name\":\"n\",\"plugins\":[$(jq -c 'del(.name,.cniVersion)' <<<"$BRIDGE")]}"
	echo "$conf" >"$NET/n.conflist"
	works add n /run/netns/a --id web
	for i in /run/netns/a /run/netns/b /run/netns/none; do
		tool add n $i --id web
		[ "$status" -ne 0 ] || show "added again in $i"
		inside a ip link show eth0 >/dev/null
	done
	printf '#!/bin/sh\nexec "%s" inject --main $STRIKE -- "%s" "$@"\n' "$ATTACK" "$CNITOOL" >"$T/tool"
	chmod +x "$T/tool"
	for ((i = 1; i <= 120; i++)); do
		STRIKE="--fail $i=EMFILE" CNITOOL=$T/tool tool add n /run/netns/a --id web
		[ "$status" -ne 0 ] || show "call $i: added again"
		inside a ip link show eth0 >/dev/null || show "call $i: eth0 is gone"
	done
	works del n /run/netns/a --id web
	nothing_left br0
}

@test "host-local: for want of memory an address is refused, not put elsewhere" {
	[ -e "${STARVE_LIB:-}" ] || skip "no STARVE_LIB: tests/faults/run builds it"
	local i=0 seen=0 dir=/var/lib/cni/state/of/networks conf
	conf="{\"cniVersion\":\"1.1.0\",\"name\":\"n\",\"type\":\"x\",\"ipam\":{\"type\":\"host-local\",\"dataDir\":\"$dir\",\"subnet\":\"10.9.0.0/24\"}}"
	printf '#!/bin/sh\nLD_PRELOAD="%s" exec "%s/host-local"\n' "$STARVE_LIB" "$CNI_PLUGIN_DIR" >"$T/starved"
	chmod +x "$T/starved"
	for ((i = 1; i <= 120; i++)); do
		STARVE=$i cni ADD "$T/starved" "c$i" <<<"$conf"
		[ "$status" -le 1 ] || show "allocation $i: it crashed"
		[ "$status" -eq 0 ] || seen=$((seen + 1))
		cni DEL host-local "c$i" <<<"$conf"
		same "leases after allocation $i" '' "$(host find /var/lib/cni -name '10.9.*')"
	done
	[ "$seen" -gt 20 ] || show "only $seen allocations failed"
}

@test "bridge and ptp: an ADD that fails for want of memory has left nothing" {
	[ -e "${STARVE_LIB:-}" ] || skip "no STARVE_LIB: tests/faults/run builds it"
	local i p conf left seen=0
	for p in bridge ptp; do
		conf="{\"cniVersion\":\"1.1.0\",\"name\":\"n\",\"type\":\"$p\",\"bridge\":\"br0\",\"isGateway\":true,\"ipMasq\":true,\"macspoofchk\":true,\"ipam\":{\"type\":\"host-local\",\"subnet\":\"10.9.0.0/24\"}}"
		printf '#!/bin/sh\nLD_PRELOAD="%s" exec "%s/%s"\n' "$STARVE_LIB" "$CNI_PLUGIN_DIR" $p >"$T/starved"
		chmod +x "$T/starved"
		for ((i = 30; i <= 140; i++)); do
			STARVE=$i cni ADD "$T/starved" a <<<"$conf"
			[ "$status" -le 1 ] || show "$p, allocation $i: it crashed"
			# The bridge stays where the ADD that made it succeeded.
			if [ "$status" -eq 0 ]; then
				ok DEL $p a <<<"$conf"
				ok GC $p <<<"$conf"
			else
				seen=$((seen + 1))
			fi
			left=$(inside a ip -br link | grep -v '^lo ') || :
			same "in the container after allocation $i of $p" '' "$left"
			nothing_left
			same "rules after allocation $i of $p" '' "$(host nft list ruleset)"
		done
	done
	[ "$seen" -gt 60 ] || show "only $seen allocations failed"
}
