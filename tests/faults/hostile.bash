# What the tests of hostile input share.

load ../bats/helpers

CALL_TIMEOUT=60 # seconds: what takes so long hangs, however busy the machine is

setup() {
	sandbox
	only_cnibox "the Go plugins crash, hang or leave things behind on some of this"
	netns c1
	# For those that put their link on another one.
	inside c1 ip link add m0 up type bridge
}
teardown() { sandbox_end; }

BR='"cniVersion":"1.1.0","name":"net","type":"bridge","isGateway":true,"ipMasq":true'
IPAM='{"type":"host-local","subnet":"10.1.0.0/24"}'
PREV='{"cniVersion":"1.1.0","interfaces":[{"name":"eth0","mac":"02:00:00:00:00:01","sandbox":"/run/netns/c1"}],"ips":[{"address":"10.1.0.2/24","interface":0}]}'

# Each plugin with a config that would work; one that is not in $CNI_PLUGIN_DIR is left out.
declare -gA CONFS=(
	[bandwidth]="\"name\":\"net\",\"type\":\"bandwidth\",\"ingressRate\":100000,\"ingressBurst\":1000000,\"prevResult\":$PREV"
	[bridge]="${BR#*,},\"ipam\":$IPAM"
	[dummy]="\"name\":\"net\",\"type\":\"dummy\",\"ipam\":$IPAM"
	[host-device]="\"name\":\"net\",\"type\":\"host-device\",\"device\":\"dev0\",\"ipam\":$IPAM"
	[host-local]="\"name\":\"net\",\"type\":\"bridge\",\"ipam\":$IPAM"
	[ipvlan]="\"name\":\"net\",\"type\":\"ipvlan\",\"master\":\"m0\",\"linkInContainer\":true,\"ipam\":$IPAM"
	[loopback]="\"name\":\"lo\",\"type\":\"loopback\""
	[macvlan]="\"name\":\"net\",\"type\":\"macvlan\",\"master\":\"m0\",\"linkInContainer\":true,\"ipam\":$IPAM"
	[portmap]="\"name\":\"net\",\"type\":\"portmap\",\"runtimeConfig\":{\"portMappings\":[{\"hostPort\":80,\"containerPort\":80}]},\"prevResult\":$PREV"
	[ptp]="\"name\":\"net\",\"type\":\"ptp\",\"ipMasq\":true,\"ipam\":$IPAM"
	[static]="\"name\":\"net\",\"type\":\"bridge\",\"ipam\":{\"type\":\"static\",\"addresses\":[{\"address\":\"10.1.0.2/24\",\"gateway\":\"10.1.0.1\"}]}"
	[tap]="\"name\":\"net\",\"type\":\"tap\",\"ipam\":$IPAM"
	[vlan]="\"name\":\"net\",\"type\":\"vlan\",\"master\":\"m0\",\"vlanId\":10,\"linkInContainer\":true,\"ipam\":$IPAM"
	[tuning]="\"name\":\"net\",\"type\":\"tuning\",\"mac\":\"02:00:00:00:00:09\",\"prevResult\":$PREV"
)
PLUGINS=$(for p in "${!CONFS[@]}"; do [ ! -e "$CNI_PLUGIN_DIR/$p" ] || echo "$p"; done | sort)

# conf PLUGIN [KEYS]: that config with more keys.
conf() { echo "{\"cniVersion\":\"1.1.0\",${CONFS[$1]}${2:+,$2}}"; }

# Everything that a call could have changed.
state() {
	{
		host sh -c 'ip -o link; ip -o addr; ip rule; ip route; nft -s list ruleset
			find /var/lib/cni /run /etc/cni -xdev ! -path "/run/.sandbox*" -printf "%p %y %s %l\n" | sort'
		inside c1 sh -c 'ip -o link; ip -o addr; ip route'
	} | grep -v 'inet6 fe80:' | sed 's/ state [A-Z]*//; s/valid_lft.*//; s/NO-CARRIER,//; s/,LOWER_UP//; s/ linkdown//'
}

# unchanged CMD...: what CMD does changes nothing.
unchanged() {
	local before after
	before=$(state)
	"$@" || return
	after=$(state)
	[ "$before" = "$after" ] || { diff <(echo "$before") <(echo "$after") >&2; show "$* changed something"; }
}

# bad VERB PLUGIN ID [IFNAME] <config: one error object.
bad() {
	cni "$@"
	failed any . "$*"
}

# refused VERB PLUGIN ID [IFNAME] <config: one error object, nothing changed.
refused() { unchanged bad "$@"; }

# ends VERB PLUGIN ID [IFNAME] <config: in order, either way.
ends() {
	cni "$@"
	[ "$status" -eq 0 ] || failed any . "$*"
}

# put KIND PATH: something at PATH (on the node) that should not be there.
KINDS="empty torn binary huge directory fifo symlink loop dangling"
put() {
	host rm -rf "$2"
	host mkdir -p "${2%/*}"
	case $1 in
	empty) host sh -c ': >"$1"' put "$2" ;;
	torn) host sh -c 'printf "{\"kind\":\"cniCacheV1\",\"mac\":\"02:00" >"$1"' put "$2" ;;
	binary) host sh -c 'head -c 3000 /dev/urandom >"$1"' put "$2" ;;
	huge) host truncate -s 20G "$2" ;;
	directory) host mkdir "$2" ;;
	fifo) host mkfifo "$2" ;;
	symlink) host sh -c 'echo precious >"$2" && ln -s "$2" "$1"' put "$2" "$T/target" ;;
	loop) host ln -s "${2##*/}" "$2" ;;
	dangling) host ln -s "$T/nowhere" "$2" ;;
	esac
}

# What a symlink pointed to is as it was.
precious() {
	[ ! -e "$T/nowhere" ] || { echo "$1: a file was made through a symlink" >&2 && return 1; }
	[ ! -e "$T/target" ] || same "$1: target of the symlink" precious "$(<"$T/target")"
}

# other SCRIPT: a plugin "other" on CNI_PATH that does that.
other() {
	mkdir -p "$T/bin"
	printf '#!/bin/sh\n%s\n' "$1" >"$T/bin/other"
	chmod +x "$T/bin/other"
}

# tool ARG...: cnitool on the node.
tool() {
	status=0
	CNI_PATH=$T/bin:$CNI_PLUGIN_DIR CAP_ARGS=${CAP_ARGS-} timeout -k 2 "$CALL_TIMEOUT" \
		nsenter -t "$HOLDER" -m -n -- "$CNI_PLUGIN_DIR/cnitool" "$@" >"$T/stdout" 2>"$T/stderr" </dev/null 3>&- || status=$?
	taken
}

# One line about it, nothing on standard output.
tool_fails() {
	tool "$@"
	[ "$status" = 1 ] && [ -z "$output" ] && [ -n "$stderr" ] || show "cnitool $* should fail in order"
}
