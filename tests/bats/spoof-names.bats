# The MAC spoof filter: the Go plugin's names for its chains do not tell all attachments apart; each keeps its own filter.

load helpers

setup() {
	need_applet bridge
	sandbox
}
teardown() { sandbox_end; }

GO_DIR=${CNI_GO_DIR:-/usr/lib/cni}

conf() { echo "{\"cniVersion\":\"1.1.0\",\"name\":\"${1:-n}\",\"type\":\"bridge\",\"bridge\":\"br0\",\"macspoofchk\":true}"; }
with_prev() { jq -c --slurpfile r "$T/$2" '.prevResult = $r[0]' <<<"$1"; }

# add ID IFNAME: the ADD; its result is kept in $T/ID.IFNAME.
add() {
	ok ADD bridge "$1" "$2" <<<"$(conf)" && cp "$T/stdout" "$T/$1.$2"
}
del() { NETNS=${3-/run/netns/$1} ok DEL bridge "$1" "$2" <<<"$(conf)"; }
check() { ok CHECK bridge "$1" "$2" <<<"$(with_prev "$(conf)" "$1.$2")"; }


# The filters in place, as "interface MAC" lines: what each jump leads to.
filters() {
	host nft -j list table bridge nat 2>/dev/null | jq -r '
		[.nftables[].rule | values] as $r
		| $r[] | select(.chain == "PREROUTING") | .expr[0].match.right as $port | .expr[-1].jump.target as $iface
		| ($r[] | select(.chain == $iface) | .expr[-1].jump.target) as $mac
		| ($r[] | select(.chain == $mac) | .expr[0].match.right? // empty) as $address
		| "\($port) \($address)"' | sort
}
expected() {
	local f
	for f; do jq -r '"\(.interfaces[1].name) \(.interfaces[2].mac)"' "$T/$f"; done | sort
}

# collide ID1 IFNAME1 ID2 IFNAME2: both keep their filter, whoever goes first.
collide() {
	local first
	netns "$1"
	[ "$1" = "$3" ] || netns "$3"
	for first in 1 3; do
		add "$1" "$2"
		add "$3" "$4"
		same "filters" "$(expected "$1.$2" "$3.$4")" "$(filters)"
		check "$1" "$2"
		check "$3" "$4"
		# A repeated DEL and one without a namespace change nothing either.
		if [ $first = 1 ]; then
			del "$1" "$2"
			del "$1" "$2" ''
			same "filters" "$(expected "$3.$4")" "$(filters)"
			check "$3" "$4"
			del "$3" "$4"
		else
			del "$3" "$4"
			del "$3" "$4" ''
			same "filters" "$(expected "$1.$2")" "$(filters)"
			check "$1" "$2"
			del "$1" "$2"
		fi
		same "ruleset" '' "$(host nft list ruleset)"
	done
}

@test "id web-net with c, id web with net-c: each keeps its own filter" {
	only_cnibox "the Go plugins take one for the other"
	collide web-net c web net-c
}

@test "interfaces eth0 and eth0-mac of one container: each keeps its own filter" {
	only_cnibox "the Go plugins take one for the other"
	collide box eth0 box eth0-mac
}

@test "GC takes the one that is not valid" {
	only_cnibox "the Go plugins have no GC for it"
	netns web-net
	netns web
	add web-net c
	add web net-c
	ok GC bridge '' <<<"$(conf | jq '.["cni.dev/valid-attachments"] = [{containerID: "web", ifname: "net-c"}]')"
	same "filters" "$(expected web.net-c)" "$(filters)"
	check web net-c
	ok GC bridge '' <<<"$(conf | jq '.["cni.dev/valid-attachments"] = []')"
	same "ruleset" '' "$(host nft list ruleset)"
}

@test "ADD again after a DEL that never came replaces the filter, under either name" {
	only_cnibox "the Go plugins take one for the other"
	local name
	netns web-net
	netns web
	add web-net c
	add web net-c
	for name in web-net.c web.net-c; do
		inside "${name%.*}" ip link del "${name#*.}"
		add "${name%.*}" "${name#*.}"
		same "filters" "$(expected web-net.c web.net-c)" "$(filters)"
		check web-net c
		check web net-c
	done
}

@test "our DEL of what the Go plugin made leaves the filter that is marked as another's" {
	only_cnibox "about the change from the Go plugins"
	[ -x "$GO_DIR/bridge" ] || skip "no Go plugins in $GO_DIR"
	netns web-net
	netns web
	add web-net c
	del web net-c
	same "filters" "$(expected web-net.c)" "$(filters)"
	check web-net c
	del web-net c
	same "ruleset" '' "$(host nft list ruleset)"
}
