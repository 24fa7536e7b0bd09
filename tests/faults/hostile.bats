# Input that means harm, or comes from a disk that lies. Each call ends within ten seconds, with a
# result or with one error object, and where it fails nothing has changed.

load ../bats/helpers

CALL_TIMEOUT=10

setup() {
	sandbox
	only_cnibox "the Go plugins crash, hang or leave things behind on some of this"
	netns c1
}
teardown() { sandbox_end; }

PLUGINS="bandwidth bridge host-local loopback portmap tuning"
BR='"cniVersion":"1.1.0","name":"net","type":"bridge","isGateway":true,"ipMasq":true'
IPAM='{"type":"host-local","subnet":"10.1.0.0/24"}'
PREV='{"cniVersion":"1.1.0","interfaces":[{"name":"eth0","mac":"02:00:00:00:00:01","sandbox":"/run/netns/c1"}],"ips":[{"address":"10.1.0.2/24","interface":0}]}'

# A config that would work, but for what is in $1 (more keys).
conf() {
	case $1 in
	bridge) echo "{$BR,\"ipam\":$IPAM${2:+,$2}}" ;;
	host-local) echo "{\"cniVersion\":\"1.1.0\",\"name\":\"net\",\"type\":\"bridge\",\"ipam\":$IPAM${2:+,$2}}" ;;
	loopback) echo "{\"cniVersion\":\"1.1.0\",\"name\":\"lo\",\"type\":\"loopback\"${2:+,$2}}" ;;
	tuning) echo "{\"cniVersion\":\"1.1.0\",\"name\":\"net\",\"type\":\"tuning\",\"mac\":\"02:00:00:00:00:09\",\"prevResult\":$PREV${2:+,$2}}" ;;
	portmap) echo "{\"cniVersion\":\"1.1.0\",\"name\":\"net\",\"type\":\"portmap\",\"runtimeConfig\":{\"portMappings\":[{\"hostPort\":80,\"containerPort\":80}]},\"prevResult\":$PREV${2:+,$2}}" ;;
	bandwidth) echo "{\"cniVersion\":\"1.1.0\",\"name\":\"net\",\"type\":\"bandwidth\",\"ingressRate\":100000,\"ingressBurst\":1000000,\"prevResult\":$PREV${2:+,$2}}" ;;
	esac
}

# Everything that a call could have changed.
state() {
	{
		host sh -c 'ip -o link; ip -o addr; ip rule; ip route; nft -s list ruleset
			find /var/lib/cni /run /etc/cni -xdev ! -path "/run/.sandbox*" -printf "%p %y %s %l\n" | sort'
		inside c1 sh -c 'ip -o link; ip -o addr; ip route'
	} | sed 's/ state [A-Z]*//; s/valid_lft.*//; s/NO-CARRIER,//; s/,LOWER_UP//; s/ linkdown//'
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

# ---- JSON -------------------------------------------------------------------------------------

@test "what is not one JSON object, for every plugin and verb" {
	local p v text i=0
	for p in $PLUGINS; do
		for text in '' ' ' null true '"x"' 12 '[]' '[{}]' '{' '}' '{}{}' '{"a":1,}' "{'a':1}" '{"a":1}x' \
			'{"name":"net","cniVersion":"1.1.0"' $'\xef\xbb\xbf{}' $'{"name":"\xff\xfe"}' \
			'{"name":"\ud800"}' '{"name":"a\u0000b"}' '{"name":1e999}' '{"name":{}}' \
			'{"name":"../../etc"}' '{"name":"net","cniVersion":"9.9.9"}' \
			'{"name":"net","cniVersion":"1.1.0","prevResult":[]}{'; do
			v=(ADD DEL CHECK GC STATUS)
			bad "${v[i++ % 5]}" "$p" c1 <<<"$text" || { echo "it was given: $text" >&2 && return 1; }
		done
	done
	nothing_left
	host test ! -e /run/cnibox/host-local
}

@test "JSON of any depth and size" {
	local p deep wide
	deep=$(printf '%0100000d' 0)
	wide=$(seq 1 50000 | sed 's/.*/"k&":&/' | paste -sd,)
	for p in $PLUGINS; do
		refused ADD "$p" c1 <<<"${deep//0/[}"
		refused ADD "$p" c1 <<<"${deep//0/'{"a":'}"
		refused ADD "$p" c1 <<<"$(conf "$p" "\"args\":${deep//0/[}${deep//0/]}")"
		# Too large to be a config; what comes after the limit is not read for ever.
		head -c 40000000 /dev/zero | tr '\0' ' ' >"$T/big"
		refused ADD "$p" c1 <"$T/big"
		refused ADD "$p" c1 </dev/zero
		ends DEL "$p" c1 <<<"$(conf "$p" "\"x\":{$wide}")"
	done
	nothing_left
}

@test "wrong types everywhere: an error that changes nothing" {
	local p k v
	for p in $PLUGINS; do
		for k in cniVersion name ipam runtimeConfig args prevResult; do
			for v in 1 '"x"' '[1]' '{"a":{"b":[]}}' true -1e400 '[[[]]]'; do
				case $p/$k/$v in
				*/name/'"x"' | */args/'{'* | */runtimeConfig/'{'* | loopback/* | */ipam/*) ends ADD "$p" c1 <<<"$(conf "$p" "\"$k\":$v")" ;;
				bridge/prevResult/* | host-local/prevResult/*) ends ADD "$p" c1 <<<"$(conf "$p" "\"$k\":$v")" ;;
				*) bad ADD "$p" c1 <<<"$(conf "$p" "\"$k\":$v")" ;;
				esac
				ends DEL "$p" c1 <<<"$(conf "$p" "\"$k\":$v")"
				cni DEL "$p" c1 <<<"$(conf "$p")"
			done
		done
	done
	for k in bridge mtu vlan vlanTrunk isGateway ipMasq dns; do
		for v in '[1]' '{"a":1}' -99999999999 '"\u0001"' '"../x"' '"a b"' '"sixteen-bytes-xx"'; do
			case $k/$v in dns/'{'*) continue ;; esac
			bad ADD bridge c1 <<<"$(conf bridge "\"$k\":$v")"
		done
	done
	nothing_left cni0
}

# ---- names ------------------------------------------------------------------------------------

each_bad_name() {
	local p=$1 name
	for name in .. ../c1 a/b /etc/passwd -x .hidden 'a b' $'a\nb' 'a;b' "$(printf 'a/%.0s' {1..500})"; do
		bad ADD "$p" "$name" <<<"$(conf "$p")" || return
		bad DEL "$p" "$name" <<<"$(conf "$p")" || return
		bad ADD "$p" c1 <<<"$(conf "$p" "\"name\":$(jq -Rs 'rtrimstr("\n")' <<<"$name")")" || return
	done
	for name in .. a/b 'a b' a:b sixteen-bytes-xx $'a\tb'; do
		bad ADD "$p" c1 "$name" <<<"$(conf "$p")" || return
		bad DEL "$p" c1 "$name" <<<"$(conf "$p")" || return
	done
}

@test "ids, networks and interfaces that are paths" {
	local p
	for p in $PLUGINS; do
		NETNS=/run/netns/c1 unchanged each_bad_name "$p"
	done
	nothing_left
}

@test "the longest interface name, and ids of any length" {
	local n id
	ok ADD bridge c1 fifteen-bytes-x <<<"$(conf bridge)"
	ok CHECK bridge c1 fifteen-bytes-x <<<"$(conf bridge "\"prevResult\":$output")"
	ok DEL bridge c1 fifteen-bytes-x <<<"$(conf bridge)"
	for n in 64 200 255 256 1000 5000 100000; do
		id=$(printf "%0${n}d" 0)
		for p in bridge tuning portmap; do
			NETNS=/run/netns/c1 ends ADD $p "$id" <<<"$(conf $p)"
			NETNS=/run/netns/c1 ends DEL $p "$id" <<<"$(conf $p)"
		done
		host sh -c 'rm -rf /run/cnibox/host-local'
	done
	nothing_left cni0
}

@test "CNI_ARGS of any kind" {
	local bad
	for bad in = == ';' 'a=b' 'IP' 'IP=' 'IP=10.1.0.7=' 'IP=x;;' "$(printf 'K=V;%.0s' {1..20000})" $'IP=\x01' 'IgnoreUnknown=true;IP=10.1.0.300' \
		'IgnoreUnknown=maybe;X=1' 'MAC=zz' 'IP=10.1.0.1'; do
		CNI_ARGS=$bad ends ADD bridge c1 <<<"$(conf bridge)"
		CNI_ARGS=$bad ends DEL bridge c1 <<<"$(conf bridge)"
		ok DEL bridge c1 <<<"$(conf bridge)"
	done
	nothing_left cni0
}

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

# ---- the namespace ----------------------------------------------------------------------------

each_bad_netns() {
	local p=$1 path
	for path in /run/netns/{file,fifo,dir,loop,dangling,gone} /proc/self/ns/{mnt,pid,user} /proc/self/ns/net \
		/proc/1 /dev/null /dev/zero relative '' "$(printf '/x%.0s' {1..5000})"; do
		NETNS=$path bad ADD "$p" c1 <<<"$(conf "$p")" || return
		# Gone, or another's: both are no reason to keep what there is, or to touch it.
		NETNS=$path ends DEL "$p" c1 <<<"$(conf "$p")" || return
	done
}

@test "a path that is no network namespace" {
	local p
	put empty /run/netns/file
	put fifo /run/netns/fifo
	put directory /run/netns/dir
	put loop /run/netns/loop
	put dangling /run/netns/dangling
	for p in bridge loopback tuning bandwidth; do
		unchanged each_bad_netns "$p"
	done
	nothing_left
}

@test "a namespace that another container has taken over meanwhile" {
	local list='{"cniVersion":"1.1.0","name":"net","plugins":[{"type":"bridge","ipam":{"type":"host-local","subnet":"10.1.0.0/24"}},{"type":"tuning","mac":"02:00:00:00:00:09"},{"type":"bandwidth","egressRate":100000,"egressBurst":1000000}]}'
	local other
	chain_ok ADD "$list" c1
	host sh -c 'umount -l /run/netns/c1; rm /run/netns/c1'
	netns c1
	NETNS=/run/netns/c1 chain_ok ADD "${list/02:00:00:00:00:09/02:00:00:00:00:10}" c2
	other=$(inside c1 ip -j link show eth0 | jq -c '.[0] | [.address, .operstate, .mtu]')
	# The DEL of the first has the path of the second.
	chain_ok DEL "$list" c1
	same "the other's link" "$other" "$(inside c1 ip -j link show eth0 | jq -c '.[0] | [.address, .operstate, .mtu]')"
	NETNS=/run/netns/c1 chain_ok CHECK "${list/02:00:00:00:00:09/02:00:00:00:00:10}" c2
	NETNS=/run/netns/c1 chain_ok DEL "${list/02:00:00:00:00:09/02:00:00:00:00:10}" c2
	nothing_left cni0
}

# ---- output -----------------------------------------------------------------------------------

@test "standard output closed, full, or gone: an error, and nothing stays" {
	local p how before
	host ip link add cni0 type bridge
	ok ADD bridge c1 <<<"$(conf bridge)"
	PREV=$output
	for p in tuning portmap bandwidth; do
		before=$(state | grep -v '^/run/cni\|^/run/cnibox')
		for how in '>&-' '>/dev/full' '| true'; do
			status=0
			CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 CNI_PATH=$CNI_PLUGIN_DIR \
				timeout 10 nsenter -t "$HOLDER" -m -n -- bash -c "set -o pipefail; { \"$CNI_PLUGIN_DIR/$p\" $how; } 3>&-" \
				<<<"$(conf $p)" >"$T/stdout" 2>"$T/stderr" || status=$?
			taken
			case $how in '|'*) continue ;; esac
			[ "$status" = 1 ] || show "ADD $p $how should exit with 1"
			same "state after ADD $p $how" "$before" "$(state | grep -v '^/run/cni\|^/run/cnibox')"
		done
		cni DEL $p c1 <<<"$(conf $p)"
	done
}

# ---- others' plugins, and the runtime's side --------------------------------------------------

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

@test "a plugin in the list that prints rubbish, megabytes, nothing, two documents, or never ends" {
	need_applet cnitool
	local does
	host sh -c 'cat >/etc/cni/net.d/net.conflist' <<<"{\"cniVersion\":\"1.1.0\",\"name\":\"net\",\"plugins\":[{$BR,\"ipam\":$IPAM},{\"type\":\"other\"}]}"
	for does in 'echo rubbish' 'head -c 100000000 /dev/zero' 'yes' : 'echo "{}{}"' 'echo "{\"cniVersion\":\"1.1.0\"} x"' 'echo "[]"' \
		'kill -9 $$' 'kill -SEGV $$' 'exit 3' 'echo "{\"code\":7}"; exit 1' 'echo "{\"code\":\"x\",\"msg\":[]}"; exit 1' \
		'yes >&2' 'sleep 100' 'sleep 100 & exit 1' 'trap "" TERM INT; while :; do sleep 1; done' 'exec >&- 2>&-; sleep 100' \
		'head -c 2000000 /dev/zero | tr "\0" "["' 'printf "\377\376{}"' 'cat; exit 1' 'echo "{\"cniVersion\":\"7.7\"}"' \
		'echo "{\"cniVersion\":\"1.1.0\",\"ips\":[{\"address\":\"x\"}]}"'; do
		other "[ \"\$CNI_COMMAND\" = ADD ] || exit 0
$does"
		tool_fails add --timeout 1 net /run/netns/c1
		nothing_left cni0
		same "cache after: $does" '' "$(host sh -c 'ls /var/lib/cni/results 2>/dev/null')"
	done
}

@test "a plugin that does so when it is to delete, too" {
	need_applet cnitool
	local does
	host sh -c 'cat >/etc/cni/net.d/net.conflist' <<<"{\"cniVersion\":\"1.1.0\",\"name\":\"net\",\"plugins\":[{$BR,\"ipam\":$IPAM},{\"type\":\"other\"}]}"
	for does in 'echo rubbish; exit 1' 'head -c 100000000 /dev/zero' 'kill -9 $$' 'exit 3' 'sleep 100'; do
		other 'cat >/dev/null; [ $CNI_COMMAND != ADD ] || echo "{\"cniVersion\":\"1.1.0\"}"'
		tool add net /run/netns/c1
		[ "$status" = 0 ] || show "add"
		other "$does"
		tool_fails del --timeout 1 net /run/netns/c1
		# All the others have done their part; the entry stays until the last has.
		nothing_left cni0
		other :
		tool del net /run/netns/c1
		[ "$status" = 0 ] || show "second del"
		same "cache after: $does" '' "$(host sh -c 'ls /var/lib/cni/results')"
	done
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
