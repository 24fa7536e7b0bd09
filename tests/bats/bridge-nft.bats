# bridge: what it does with nftables, masquerading (ipMasq) and the MAC spoof filter (macspoofchk).

load helpers
bats_require_minimum_version 1.5.0

setup() {
	need_applet bridge host-local
	sandbox
}
teardown() { sandbox_end; }

GO_DIR=${CNI_GO_DIR:-/usr/lib/cni}

# config [KEYS] [NAME] [NET]: a bridge of its own for each network, addresses 10.NET.0.0/24 and
# fd00:NET::/64, the node being the gateway.
config() {
	jq -n --argjson keys "${1:-{\}}" --arg name "${2:-net1}" --arg net "${3:-1}" \
		--arg v "${VERSION:-1.0.0}" '{cniVersion: $v, name: $name, type: "bridge",
		bridge: "br\($net)", isGateway: true, ipam: {type: "host-local",
		ranges: [[{subnet: "10.\($net).0.0/24"}], [{subnet: "fd00:\($net)::/64"}]],
		routes: [{dst: "0.0.0.0/0"}, {dst: "::/0"}]}} + $keys'
}
MASQ='{"ipMasq":true}'
SPOOF='{"macspoofchk":true}'

# A namespace behind the node that knows no way back to the containers: 192.0.2.2, 2001:db8::2; the
# node is .1 there.
outside() {
	netns out
	host ip link add to-out type veth peer name eth0 netns out
	host ip addr add 192.0.2.1/24 dev to-out
	host ip addr add 2001:db8::1/64 dev to-out nodad
	host ip link set to-out up
	inside out ip addr add 192.0.2.2/24 dev eth0
	inside out ip addr add 2001:db8::2/64 dev eth0 nodad
	inside out ip link set eth0 up
}

# The address of a container, with DAD done.
address() {
	inside "$1" ip -j "-${2:-4}" addr show dev "${3:-eth0}" scope global | jq -r '.[0].addr_info[0].local'
}
settled() { [ -z "$(inside "$1" ip -6 addr show tentative)" ]; }

rules() { host nft list ruleset; }
gone() { [[ $(rules) != *"$1"* ]]; }
kept() { [[ $(rules) == *"$1"* ]]; }
digest() { printf %s "$1" | sha512sum | cut -c1-"$2"; }

# The comment on the masquerading rules: NETWORK IFNAME ID.
comment() {
	printf '%s-%s, net: %s, if: %s, id: %s' "$(digest "$1" 16)" "$(digest "$2:$3" 16)" "$1" "$2" "$3" |
		cut -c1-128
}

# ---- ipMasq -----------------------------------------------------------------------------------

@test "ipMasq: the world outside sees the node's address, both families" {
	outside
	serve out 8080
	serve out 8081 -6
	netns c1
	ok ADD bridge c1 <<<"$(config "$MASQ")"
	wait_for 60 settled c1
	wait_for 60 settled host
	same "IPv4 peer" "out 192.0.2.1" "$(ask c1 tcp 192.0.2.2 8080)"
	same "IPv6 peer" "out 2001:db8::1" "$(ask c1 tcp 2001:db8::2 8081)"
	ok DEL bridge c1 <<<"$(config "$MASQ")"
}

@test "without ipMasq the container's own address is seen" {
	outside
	inside out ip route add 10.1.0.0/24 via 192.0.2.1
	serve out 8080
	netns c1
	ok ADD bridge c1 <<<"$(config)"
	same "peer" "out $(address c1)" "$(ask c1 tcp 192.0.2.2 8080)"
}

@test "ipMasq leaves alone what stays in the network or goes to the node" {
	outside
	netns c1
	netns c2
	ok ADD bridge c1 <<<"$(config "$MASQ")"
	ok ADD bridge c2 <<<"$(config "$MASQ")"
	serve c2 8080
	serve host 8081
	same "to the neighbour" "c2 $(address c1)" "$(ask c1 tcp "$(address c2)" 8080)"
	same "to the gateway" "host $(address c1)" "$(ask c1 tcp 10.1.0.1 8081)"
}

@test "ipMasq leaves multicast alone" {
	outside
	netns c1
	ok ADD bridge c1 <<<"$(config "$MASQ")"
	# A multicast router on the node would send with the container's address; stand in for it.
	local addr from
	addr=$(address c1)
	host ip addr add "$addr/32" dev lo
	spawn out sh -c "socat -u UDP4-RECVFROM:5000,fork,ip-add-membership=239.1.1.1:192.0.2.2 \
		'SYSTEM:echo \$SOCAT_PEERADDR >>$T/seen'"
	wait_for 60 inside out grep -q :1388 /proc/net/udp
	say() { host socat -u - "UDP4-DATAGRAM:$1:5000,bind=$addr,ip-multicast-if=192.0.2.1" <<<x; }
	say 239.1.1.1
	wait_for 60 test -s "$T/seen"
	read -r from <"$T/seen"
	same "multicast comes from" "$addr" "$from"
	: >"$T/seen"
	# Again until it arrives: socat may miss one while it is busy with the one before.
	heard() { [ -s "$T/seen" ] || { say 192.0.2.2 && false; }; }
	wait_for 60 heard
	read -r from <"$T/seen"
	same "unicast comes from" 192.0.2.1 "$from"
}

@test "ipMasq: table, chains and comments are upstream's" {
	only_cnibox "the Go plugins of this version know iptables only"
	netns c1
	ok ADD bridge c1 <<<"$(config "$MASQ")"
	local c a4 a6
	c=$(comment net1 eth0 c1)
	a4=$(address c1) a6=$(address c1 6)
	same "masq_checks" "ip saddr $a4 ip daddr != 10.1.0.0/24 masquerade comment \"$c\"
ip6 saddr $a6 ip6 daddr != fd00:1::/64 masquerade comment \"$c\"" \
		"$(host nft list chain inet cni_plugins_masquerade masq_checks | grep masquerade\ comment | sed 's/^\s*//')"
	host_is '[.nftables[].chain | values] | .[0] | [.type, .hook, .prio, .policy]' \
		'["nat","postrouting",100,"accept"]' \
		nft -j list chain inet cni_plugins_masquerade postrouting
	same "postrouting" "ip daddr 224.0.0.0/4 return
ip6 daddr ff00::/8 return
goto masq_checks" "$(host nft list chain inet cni_plugins_masquerade postrouting | sed -n 's/^\t\t//; 4,6p')"
}

@test "ipMasq: a long name is cut to the 128 bytes that nft takes, and found again" {
	only_cnibox "the Go plugins of this version know iptables only"
	local id
	id=$(printf 'c%.0s' {1..64})
	netns c1
	NETNS=/run/netns/c1 ok ADD bridge "$id" eth0 <<<"$(config "$MASQ" "$(printf 'n%.0s' {1..60})")"
	kept "\"$(comment "$(printf 'n%.0s' {1..60})" eth0 "$id")\""
	NETNS='' ok DEL bridge "$id" eth0 <<<"$(config "$MASQ" "$(printf 'n%.0s' {1..60})")"
	same "ruleset" '' "$(rules)"
}

@test "ipMasq: DEL without a namespace removes the attachment's rules, the last one the table" {
	only_cnibox "the Go plugins need the namespace"
	netns c1
	netns c2
	ok ADD bridge c1 <<<"$(config "$MASQ")"
	ok ADD bridge c1 eth1 <<<"$(config "$MASQ" net2 2)"
	ok ADD bridge c2 <<<"$(config "$MASQ")"
	NETNS='' ok DEL bridge c1 <<<"$(config "$MASQ")"
	gone "if: eth0, id: c1"
	kept "if: eth1, id: c1"
	kept "if: eth0, id: c2"
	NETNS='' ok DEL bridge c1 eth1 <<<"$(config "$MASQ" net2 2)"
	NETNS='' ok DEL bridge c2 <<<"$(config "$MASQ")"
	same "ruleset" '' "$(rules)"
	NETNS='' ok DEL bridge c2 <<<"$(config "$MASQ")"
}

@test "ipMasq: CHECK notices a missing rule" {
	only_cnibox "the Go plugins do not look"
	local prev handle
	netns c1
	ok ADD bridge c1 <<<"$(config "$MASQ")"
	prev=$(config "$MASQ" | jq --argjson r "$output" '.prevResult = $r')
	ok CHECK bridge c1 <<<"$prev"
	handle=$(host nft -a list chain inet cni_plugins_masquerade masq_checks | sed -n 's/.*ip6 saddr.*# handle //p')
	host nft delete rule inet cni_plugins_masquerade masq_checks handle "$handle"
	fails 101 'masquerading' CHECK bridge c1 <<<"$prev"
}

@test "ipMasq: ADD repairs a tampered entry chain and keeps the others' rules" {
	only_cnibox "the Go plugins of this version know iptables only"
	outside
	serve out 8080
	netns c1
	netns c2
	ok ADD bridge c1 <<<"$(config "$MASQ")"
	host nft flush chain inet cni_plugins_masquerade postrouting
	ok ADD bridge c2 <<<"$(config "$MASQ")"
	same "c1's peer" "out 192.0.2.1" "$(ask c1 tcp 192.0.2.2 8080)"
	same "c2's peer" "out 192.0.2.1" "$(ask c2 tcp 192.0.2.2 8080)"
}

@test "ipMasq: what upstream's iptables made for the container goes with our DEL" {
	only_cnibox "about the change from the Go plugins"
	[ -x "$GO_DIR/bridge" ] || skip "no Go plugins in $GO_DIR"
	netns c1
	netns c2
	CNI_PATH=$GO_DIR ok ADD "$GO_DIR/bridge" c1 <<<"$(config "$MASQ")"
	CNI_PATH=$GO_DIR ok ADD "$GO_DIR/bridge" c2 <<<"$(config "$MASQ")"
	kept "CNI-$(digest net1c1 24)"
	NETNS='' ok DEL bridge c1 <<<"$(config "$MASQ")"
	gone "CNI-$(digest net1c1 24)"
	kept "CNI-$(digest net1c2 24)"
	same "jumps left" 1 "$(host iptables-save -t nat | grep -c -e '-A POSTROUTING')"
	same "jumps left" 1 "$(host ip6tables-save -t nat | grep -c -e '-A POSTROUTING')"
	NETNS='' ok DEL bridge c2 <<<"$(config "$MASQ")"
	gone "CNI-"
}

@test "ipMasq: GC removes what is not valid any more, upstream's too, and nothing of other networks" {
	only_cnibox "the Go plugins have no GC for it"
	netns c1
	netns c2
	netns c3
	export VERSION=1.1.0
	ok ADD bridge c1 <<<"$(config "$MASQ")"
	ok ADD bridge c2 <<<"$(config "$MASQ")"
	ok ADD bridge c1 eth1 <<<"$(config "$MASQ" net2 2)"
	if [ -x "$GO_DIR/bridge" ]; then
		VERSION=1.0.0
		CNI_PATH=$GO_DIR ok ADD "$GO_DIR/bridge" c3 eth0 <<<"$(config "$MASQ")"
		CNI_PATH=$GO_DIR ok ADD "$GO_DIR/bridge" c3 eth1 <<<"$(config "$MASQ" net2 2)"
		VERSION=1.1.0
	fi
	ok GC bridge '' <<<"$(config "$MASQ" | jq '.["cni.dev/valid-attachments"] = [{containerID: "c2", ifname: "eth0"}]')"
	gone "net: net1, if: eth0, id: c1"
	kept "net: net1, if: eth0, id: c2"
	kept "net: net2, if: eth1, id: c1"
	gone "CNI-$(digest net1c3 24)"
	[ ! -x "$GO_DIR/bridge" ] || kept "CNI-$(digest net2c3 24)"
}

@test "the ruleset survives a round trip through nft, traffic and DEL go on" {
	only_cnibox "the Go plugins of this version know iptables only"
	outside
	serve out 8080
	netns c1
	local both='{"ipMasq":true,"macspoofchk":true}' first
	ok ADD bridge c1 <<<"$(config "$both")"
	first=$(rules)
	host sh -c "nft list ruleset >$T/rules && nft flush ruleset && nft -f $T/rules"
	same "ruleset" "$first" "$(rules)"
	same "peer" "out 192.0.2.1" "$(ask c1 tcp 192.0.2.2 8080)"
	ok CHECK bridge c1 <<<"$(config "$both" | jq --argjson r "$output" '.prevResult = $r')"
	ok DEL bridge c1 <<<"$(config "$both")"
	same "ruleset" '' "$(rules)"
}

# ---- macspoofchk ------------------------------------------------------------------------------

# Whether the container reaches the node, with or without a MAC that is not its own.
reaches() { [ "$(${HOW:-ask} "$1" tcp 10.1.0.1 8080)" = "host $(address "$1")" ]; }

@test "macspoofchk: frames with another MAC are dropped, with its own they pass" {
	local mac
	netns c1
	netns c2
	ok ADD bridge c1 <<<"$(config "$SPOOF")"
	mac=$(jq -r '.interfaces[] | select(.name == "eth0").mac' <<<"$output")
	ok ADD bridge c2 <<<"$(config)"
	serve host 8080
	reaches c1
	inside c1 ip link set eth0 address 02:00:00:00:00:66
	HOW=knock run ! reaches c1
	inside c1 ip link set eth0 address "$mac"
	reaches c1
	# Who did not ask for it is not filtered.
	inside c2 ip link set eth0 address 02:00:00:00:00:67
	reaches c2
}

@test "macspoofchk: single spoofed frames are dropped on the way to the bridge" {
	netns c1
	netns c2
	ok ADD bridge c1 <<<"$(config "$SPOOF")"
	ok ADD bridge c2 <<<"$(config)"
	# A second address of the same container, on a macvlan with a MAC of its own.
	inside c1 ip link add link eth0 name mv0 type macvlan mode bridge
	inside c1 ip link set mv0 up
	inside c1 ip addr add 10.1.0.200/24 dev mv0
	inside c1 ping -c 1 -W 2 -I eth0 "$(address c2)"
	run ! inside c1 ping -c 1 -W 1 -I mv0 "$(address c2)"
}

@test "macspoofchk: table, chains and comments are upstream's" {
	local port mac
	netns c1
	ok ADD bridge c1 <<<"$(config "$SPOOF")"
	port=$(jq -r '.interfaces[1].name' <<<"$output")
	mac=$(jq -r '.interfaces[2].mac' <<<"$output")
	host_is '[.nftables[].chain | values] | .[0] | [.type, .hook, .prio, .policy]' \
		'["filter","prerouting",-300,"accept"]' nft -j list chain bridge nat PREROUTING
	same "rules" "iifname \"$port\" jump cni-br-iface-c1-eth0 comment \"macspoofchk-c1-eth0\"
jump cni-br-iface-c1-eth0-mac comment \"macspoofchk-c1-eth0\"
ether saddr $mac return comment \"macspoofchk-c1-eth0\"
drop comment \"macspoofchk-c1-eth0\"" \
		"$(host nft list table bridge nat | grep 'comment "macspoofchk' | sed 's/^\s*//')"
}

@test "macspoofchk: DEL without a namespace leaves nothing of ours and all of the others'" {
	only_cnibox "the Go plugins leave the table"
	netns c1
	netns c2
	ok ADD bridge c1 <<<"$(config "$SPOOF")"
	ok ADD bridge c2 <<<"$(config "$SPOOF")"
	NETNS='' ok DEL bridge c1 <<<"$(config "$SPOOF")"
	gone iface-c1
	kept iface-c2
	NETNS='' ok DEL bridge c2 <<<"$(config "$SPOOF")"
	same "ruleset" '' "$(rules)"
	# The table of somebody else, with the chain we need.
	local theirs
	host nft 'add table bridge nat; add chain bridge nat PREROUTING { type filter hook prerouting priority -300; }'
	host nft 'add rule bridge nat PREROUTING iifname "eth9" counter'
	theirs=$(rules)
	ok ADD bridge c1 <<<"$(config "$SPOOF")"
	NETNS='' ok DEL bridge c1 <<<"$(config "$SPOOF")"
	same "ruleset" "$theirs" "$(rules)"
}

@test "macspoofchk: what upstream made for the container goes with our DEL" {
	only_cnibox "about the change from the Go plugins"
	[ -x "$GO_DIR/bridge" ] || skip "no Go plugins in $GO_DIR"
	netns c1
	CNI_PATH=$GO_DIR ok ADD "$GO_DIR/bridge" c1 <<<"$(config "$SPOOF")"
	kept cni-br-iface-c1-eth0
	NETNS='' ok DEL bridge c1 <<<"$(config "$SPOOF")"
	gone cni-br-iface
	gone macspoofchk-c1
}

@test "macspoofchk: what we made goes with upstream's DEL" {
	only_cnibox "about the change to the Go plugins"
	[ -x "$GO_DIR/bridge" ] || skip "no Go plugins in $GO_DIR"
	netns c1
	ok ADD bridge c1 <<<"$(config "$SPOOF")"
	CNI_PATH=$GO_DIR ok DEL "$GO_DIR/bridge" c1 <<<"$(config "$SPOOF")"
	gone cni-br-iface
	gone macspoofchk-c1
}

@test "macspoofchk: CHECK notices a filter that lets others pass" {
	only_cnibox "the Go plugins do not look"
	local prev
	netns c1
	ok ADD bridge c1 <<<"$(config "$SPOOF")"
	prev=$(config "$SPOOF" | jq --argjson r "$output" '.prevResult = $r')
	ok CHECK bridge c1 <<<"$prev"
	host nft flush chain bridge nat cni-br-iface-c1-eth0-mac
	fails 101 'MAC spoof' CHECK bridge c1 <<<"$prev"
}

@test "macspoofchk: GC removes the filters of the network that are not valid any more" {
	only_cnibox "the Go plugins have no GC for it"
	export VERSION=1.1.0
	netns c1
	netns c2
	ok ADD bridge c1 <<<"$(config "$SPOOF")"
	ok ADD bridge c2 <<<"$(config "$SPOOF")"
	ok ADD bridge c1 eth1 <<<"$(config "$SPOOF" net2 2)"
	ok GC bridge '' <<<"$(config "$SPOOF" | jq '.["cni.dev/valid-attachments"] = [{containerID: "c2", ifname: "eth0"}]')"
	gone iface-c1-eth0
	kept iface-c2-eth0
	kept iface-c1-eth1
}

# ---- all at once ------------------------------------------------------------------------------

@test "many ADDs and DELs at the same time all succeed and leave no rule" {
	only_cnibox "the Go plugins race for the xtables lock"
	local i both='{"ipMasq":true,"macspoofchk":true}' conf
	conf=$(config "$both")
	for i in {1..16}; do netns "c$i"; done
	at_once() {
		local pids=() p
		for i in {1..16}; do
			(
				T=$T/$1-$i && mkdir -p "$T" && ok "$1" bridge "c$i" <<<"$conf"
			) 3>&- &
			pids+=($!)
		done
		for p in "${pids[@]}"; do wait "$p" || return 1; done
	}
	at_once ADD
	same "masquerading rules" 32 "$(host nft list chain inet cni_plugins_masquerade masq_checks | grep -c 'masquerade comment')"
	same "filters" 16 "$(host nft list chain bridge nat PREROUTING | grep -c jump)"
	at_once DEL
	same "ruleset" '' "$(rules)"
	nothing_left br1
}
