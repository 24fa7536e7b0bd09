# When a main plugin asks its IPAM plugin: one that may want to use the link, dhcp or any that is
# executed, finds it up and ready on ADD, and still there on DEL.

load helpers

setup() {
	need_applet bridge host-local
	sandbox
	netns c1
	host mkdir /run/ipam
	# Notes what it sees of the container's link, and of the host's end.
	host tee /run/ipam/mine >/dev/null <<-'EOS'
		#!/bin/sh
		cat >/dev/null
		ns=${CNI_NETNS##*/}
		case $CNI_COMMAND in
		ADD | DEL) ip -n "$ns" -br link show "$CNI_IFNAME" | awk -v v="$CNI_COMMAND" '{print v, $2}' >>/run/seen ;;
		esac
		[ ! -e "/run/fail-$CNI_COMMAND" ] || { echo '{"code":77,"msg":"no"}'; exit 1; }
		[ "$CNI_COMMAND" != ADD ] || echo '{"cniVersion":"1.0.0","ips":[{"address":"10.8.0.2/24"}]}'
	EOS
	host chmod +x /run/ipam/mine
	CNI_PATH=/run/ipam:$CNI_PLUGIN_DIR
}
teardown() { sandbox_end; }

CONF='{"cniVersion":"1.0.0","name":"net1","type":"bridge","bridge":"br0","ipam":{"type":"mine"}}'
seen() { host cat /run/seen | xargs; }

@test "an IPAM plugin that is executed finds the link up on ADD, and again on DEL" {
	ok ADD bridge c1 <<<"$CONF"
	only_cnibox "the Go plugin leaves the link down until IPAM has answered, and deletes it first"
	same "on ADD" "ADD UP" "$(seen)"
	inside_is c1 '.[0].addr_info[0].local' 10.8.0.2 ip -4 -j addr show dev eth0
	ok DEL bridge c1 <<<"$CONF"
	same "on DEL" "ADD UP DEL UP" "$(seen)"
	nothing_left br0
}

@test "it fails on DEL: the rest goes all the same, and the error is reported" {
	only_cnibox "the Go plugin deletes the link first"
	ok ADD bridge c1 <<<"$CONF"
	host touch /run/fail-DEL
	fails 77 no DEL bridge c1 <<<"$CONF"
	nothing_left br0
}

@test "it fails on ADD: nothing is left" {
	only_cnibox "the Go plugin leaves the pair"
	host touch /run/fail-ADD
	fails 77 no ADD bridge c1 <<<"$CONF"
	nothing_left
}
