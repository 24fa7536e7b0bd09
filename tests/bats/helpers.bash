# Helpers of the bats suite. Load with `load helpers`, then:
#
#   setup() { sandbox; }
#   teardown() { sandbox_end; }
#
# Every test gets a node of its own: a network namespace ("the host" of the test) and a mount
# namespace with private, empty /run, /var/lib/cni and /etc/cni. Nothing outside $T is written.
# Feed configs with a here-string or here-document (ok ADD bridge c1 <<<"$conf"). What runs in a
# container's namespace is `inside NAME CMD...` ("in" is a reserved word of the shell).

CNIBOX_ROOT=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)
CNIBOX_BUILD=${CNIBOX_BUILD:-$CNIBOX_ROOT/build}
CNI_PLUGIN_DIR=${CNI_PLUGIN_DIR:-$CNIBOX_BUILD/plugins}
CNI_PLUGIN_DIR=${CNI_PLUGIN_DIR%/}

# The caller's environment must not leak into a call: only what a test sets counts.
for _v in ${!CNI_@}; do
	[ "$_v" = CNI_PLUGIN_DIR ] || unset "$_v"
done
unset _v NETNS CAP_ARGS VALID NETCONFPATH
export CNIBOX_BUILD CNI_PLUGIN_DIR LC_ALL=C

# ---- the sandbox ------------------------------------------------------------------------------

# What the holder process runs inside the fresh namespaces before it says "ready".
read -r -d '' SANDBOX_INIT <<'EOS' || :
set -e
# Mounts a private empty directory at $1/$2. Where it is missing it is made on an overlay first: nothing
# is created on the disk below, and a test finds a mount point there on every machine.
cover() {
	if [ ! -d "$1/$2" ]; then
		s=/run/.sandbox$1
		mkdir -p "$s/up" "$s/work"
		mount -t overlay -o "lowerdir=$1,upperdir=$s/up,workdir=$s/work" sandbox "$1" 2>/dev/null ||
			{ cp -a "$1/." "$s/up/" && mount --bind "$s/up" "$1"; }
		mkdir "$1/$2"
	fi
	mount -t tmpfs -o mode=755 sandbox "$1/$2"
}
mount -t tmpfs -o mode=755 sandbox /run
mkdir -p /run/netns /run/cnibox /run/cni /run/lock
[ -L /var/run ] || mount --bind /run /var/run
cover /var/lib cni
cover /etc cni
mkdir -p /etc/cni/net.d
# /sys/class/net follows the namespace of whoever mounts it.
mount -t sysfs sandbox /sys 2>/dev/null || :
# IPv4 settings of a new namespace are copied from the machine: start from known ones.
n=/proc/sys/net/ipv4
for f in $n/ip_forward $n/conf/all/rp_filter $n/conf/default/rp_filter $n/conf/all/route_localnet; do
	echo 0 >$f || :
done 2>/dev/null
ip link set lo up
echo ready
exec cat
EOS

PIDS=()

# Makes the node. $T is the test's directory, at the same path inside and outside.
sandbox() {
	local word
	T=$BATS_TEST_TMPDIR
	PIDS=()
	coproc HOLD { exec unshare -m -n --propagation private sh -c "$SANDBOX_INIT" 2>"$T/sandbox.err" 3>&-; }
	HOLDER=$HOLD_PID
	if ! read -r -t 60 word <&"${HOLD[0]}" || [ "$word" != ready ]; then
		echo "no sandbox: $(<"$T/sandbox.err")" >&2
		return 1
	fi
}

# Ends every process the test left in its namespaces; the namespaces go with the last one.
sandbox_end() {
	local p pid
	[ -n "${HOLDER:-}" ] || return 0
	for p in "${PIDS[@]}"; do
		kill "$p" 2>/dev/null || :
	done
	for p in /proc/[0-9]*; do
		pid=${p#/proc/}
		[ "$pid" != "$HOLDER" ] || continue
		if [ "$p/ns/mnt" -ef "/proc/$HOLDER/ns/mnt" ] || [ "$p/ns/net" -ef "/proc/$HOLDER/ns/net" ]; then
			kill -KILL "$pid" 2>/dev/null || :
		fi
	done
	kill -KILL "$HOLDER" 2>/dev/null || :
	wait "$HOLDER" 2>/dev/null || :
	HOLDER=
}

# host CMD...: on the node. The working directory is /.
host() { nsenter -t "$HOLDER" -m -n -- "$@"; }

# netns NAME: a named namespace /run/netns/NAME with lo up.
netns() {
	host sh -c 'ip netns add "$1" && ip -n "$1" link set lo up &&
		ip netns exec "$1" sh -c "cd /proc/sys/net/ipv4 && for f in ip_forward conf/all/rp_filter \
			conf/default/rp_filter; do echo 0 >\$f; done"' netns "$1"
}

# inside NAME CMD...: in that namespace; "host" is the node. (/sys stays the node's: use
# `host ip netns exec NAME` for that.)
inside() {
	local name=$1
	shift
	if [ "$name" = host ]; then
		host "$@"
	else
		nsenter --mount="/proc/$HOLDER/ns/mnt" --net="/proc/$HOLDER/root/run/netns/$name" -- "$@"
	fi
}

# spawn NAME CMD...: the same in the background, ended by sandbox_end; sets $spawned. What it
# writes goes to $T/spawn.log.
spawn() {
	inside "$@" </dev/null >>"$T/spawn.log" 2>&1 3>&- &
	spawned=$!
	PIDS+=("$spawned")
	disown "$spawned"
}

# wait_for SECONDS CMD...: polls every 20 ms until CMD succeeds.
wait_for() {
	local end=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000)) what="${*:2}"
	shift
	until "$@" >/dev/null 2>&1; do
		if [ "${EPOCHREALTIME/[.,]/}" -gt "$end" ]; then
			echo "waited in vain for: $what" >&2
			return 1
		fi
		sleep 0.02
	done
}

# ---- calls ------------------------------------------------------------------------------------

# True when the plugins under test are cnibox.
is_cnibox() {
	local f
	for f in "$CNI_PLUGIN_DIR"/{cnibox,loopback,host-local,bridge}; do
		[ -e "$f" ] || continue
		f=$(readlink -f "$f")
		[ "${f##*/}" = cnibox ]
		return
	done
	return 1
}

# only_cnibox REASON: skips the test against other implementations.
only_cnibox() { is_cnibox || skip "not cnibox: $1"; }

# need_applet NAME...: skips the test when the plugin is not installed.
need_applet() {
	local a
	for a; do
		[ -e "$CNI_PLUGIN_DIR/$a" ] || skip "no $a in $CNI_PLUGIN_DIR"
	done
}

# cni VERB PLUGIN ID [IFNAME] <config: one call as libcni makes it. PLUGIN may be a path. Sets
# status, output and stderr; the raw bytes are in $T/stdout and $T/stderr.
cni() {
	local verb=$1 file=$CNI_PLUGIN_DIR/$2 id=$3 ifname=${4:-eth0} ns args=${CNI_ARGS-}
	case $2 in */*) file=$2 ;; esac
	ns=${NETNS-/run/netns/$id}
	case $verb in GC | STATUS) id='' ns='' ifname='' args='' ;; esac
	status=0
	CNI_COMMAND=$verb CNI_CONTAINERID=$id CNI_NETNS=$ns CNI_IFNAME=$ifname CNI_ARGS=$args \
		CNI_PATH=${CNI_PATH:-$CNI_PLUGIN_DIR} \
		timeout -k 2 "${CALL_TIMEOUT:-60}" nsenter -t "$HOLDER" -m -n -- "$file" \
		>"$T/stdout" 2>"$T/stderr" 3>&- || status=$?
	taken
}

# Reads what a call left behind.
taken() {
	IFS= read -r -d '' output <"$T/stdout" || :
	output=${output%$'\n'}
	stderr=$(<"$T/stderr")
}

# Says what the last call did, for a failed assertion.
show() {
	printf '%s\n' "$1" "  status: $status" "  stdout: $output" "  stderr: $stderr" >&2
	return 1
}

# ok VERB PLUGIN ID [IFNAME] <config: the call succeeds.
ok() {
	cni "$@"
	[ "$status" -eq 0 ] || show "$* should succeed"
}

# fails CODE REGEX VERB PLUGIN ID [IFNAME] <config: exit status 1 and one JSON document with that
# code (any: not compared; nor against other implementations) and a text that matches.
fails() {
	cni "${@:3}"
	failed "$1" "$2" "${*:3}"
}

# failed CODE REGEX [WHAT]: the same about the last call.
failed() {
	local got
	[ "$status" -eq 1 ] || show "${3:-the call} should exit with 1" || return 1
	got=$(jq -rs 'if length == 1 and (.[0] | type) == "object" and (.[0].code | type) == "number"
		and (.[0].msg | type) == "string" then "\(.[0].code) \(.[0].msg)\(.[0].details // "" |
		if . == "" then "" else "; " + . end)" | explode | map(if . == 0 then 63 else . end) | implode
		else error("not one error object") end' \
		<"$T/stdout" 2>/dev/null) ||
		show "${3:-the call} should print one error object" || return 1
	if [ "$1" != any ] && is_cnibox && [ "${got%% *}" != "$1" ]; then
		show "${3:-the call} should fail with code $1" || return 1
	fi
	[[ ${got#* } =~ $2 ]] || show "${3:-the call} should say /$2/"
}

# ---- assertions -------------------------------------------------------------------------------

# same WHAT EXPECTED ACTUAL: string equality.
same() {
	[ "$2" = "$3" ] || {
		printf '%s\n  expected: %s\n  actual:   %s\n' "$1" "$2" "$3" >&2
		return 1
	}
}

# jq_is FILTER EXPECTED <JSON: compared as JSON if EXPECTED parses, else as a string. Several
# outputs of the filter count as an array.
jq_is() {
	local bad
	bad=$(jq -r --arg want "$2" "[$1] as \$all
		| (if (\$all | length) == 1 then \$all[0] else \$all end) as \$got
		| (\$want | try fromjson catch \$want) as \$w
		| if \$got == \$w then \"\" else
			\"  expected: \(\$w | tojson)\n  actual:   \(\$got | tojson)\" end") ||
		bad='  no answer from jq'
	[ -z "$bad" ] || {
		printf '%s\n%s\n' "$1" "$bad" >&2
		return 1
	}
}

# is FILTER EXPECTED: about $output.
is() { jq_is "$1" "$2" <<<"$output" || show "in the output of the last call"; }

# holds FILTER: jq -e about $output.
holds() { jq -e "$1" <<<"$output" >/dev/null || show "should hold: $1"; }

# host_is FILTER EXPECTED CMD...: about what CMD prints on the node.
host_is() {
	local out
	out=$(host "${@:3}") || { echo "failed: ${*:3}" >&2 && return 1; }
	jq_is "$1" "$2" <<<"$out" || { echo "in the output of: ${*:3}" >&2 && return 1; }
}

# inside_is NAME FILTER EXPECTED CMD...: the same in namespace NAME.
inside_is() {
	local out
	out=$(inside "$1" "${@:4}") || { echo "failed in $1: ${*:4}" >&2 && return 1; }
	jq_is "$2" "$3" <<<"$out" || { echo "in $1, in the output of: ${*:4}" >&2 && return 1; }
}

# never CMD...: CMD fails. (The shell does not mind a `! CMD` that is not a test's last line.)
never() {
	if "$@"; then
		echo "should not succeed: $*" >&2
		return 1
	fi
}

# lacks REGEX CMD...: no line that CMD prints on the node matches.
lacks() {
	local out
	out=$(host "${@:2}") || { echo "failed: ${*:2}" >&2 && return 1; }
	never grep -E -e "$1" <<<"$out"
}

# nothing_left [LINK...]: the node has no links but lo and those named, no nftables table or rule
# of cnibox, no lease, and no state in /run/cnibox but empty files and *.cache, *.index, *.lock.
nothing_left() {
	local left
	left=$(host sh -c '
		for l in /sys/class/net/*; do
			l=${l##*/}
			case " lo bonding_masters $* " in *" $l "*) ;; *) echo "link $l" ;; esac
		done
		nft list ruleset 2>/dev/null | sed -nE "/^table .* cnibox|comment \"cnibox /s/^/nft: /p"
		[ ! -d /var/lib/cni/networks ] ||
			find /var/lib/cni/networks -type f ! -name lock ! -name "last_reserved_ip.*" \
				! -name "*.cache" ! -name "*.index" ! -name ".*" -printf "lease %p\n"
		for l in /run/cnibox/*; do
			[ ! -e "$l" ] || find "$l" -type f -size +0 ! -name "*.cache" ! -name "*.index" \
				! -name "*.lock" -printf "state %p\n"
		done
		:' nothing_left "$@")
	[ -z "$left" ] || {
		printf 'left behind on the node:\n%s\n' "$left" >&2
		return 1
	}
}

# ---- lists ------------------------------------------------------------------------------------

# chain VERB CONFLIST ID [IFNAME]: runs a list as libcni does. Capability args are in $CAP_ARGS,
# the valid attachments of a GC in $VALID (JSON array, default []). The final result of ADD is kept
# in $T/result-ID-IFNAME for CHECK and DEL. Stops at the first failure.
chain() {
	local verb=$1 list=$2 id=$3 ifname=${4:-eth0} n i conf prev=null order
	local kept=$T/result-$id-$ifname
	case $verb in CHECK | DEL) [ ! -e "$kept" ] || prev=$(<"$kept") ;; esac
	n=$(jq '.plugins | length' <<<"$list") || return
	order=$(seq 0 $((n - 1)))
	[ "$verb" != DEL ] || order=$(seq $((n - 1)) -1 0)
	status=0 output='' stderr=''
	for i in $order; do
		conf=$(jq -cS --argjson i "$i" --arg verb "$verb" --argjson prev "$prev" \
			--argjson cap "${CAP_ARGS:-null}" --argjson valid "${VALID:-[]}" '
			. as $l | .plugins[$i] | . as $p
			| .name = $l.name | .cniVersion = ($l.cniVersion // "")
			| if $prev != null then .prevResult = $prev else . end
			| ([$p.capabilities // {} | to_entries[] | select(.value == true) | .key
				| select(($cap // {})[.] != null)]) as $keys
			| if ($keys | length) > 0 and $verb != "GC" and $verb != "STATUS" then
				.runtimeConfig = (reduce $keys[] as $k ({}; .[$k] = $cap[$k])) else . end
			| if $verb == "GC" then .["cni.dev/valid-attachments"] = $valid
				| .["cni.dev/attachments"] = $valid else . end' <<<"$list") || return
		cni "$verb" "$(jq -r ".plugins[$i].type" <<<"$list")" "$id" "$ifname" <<<"$conf"
		[ "$status" -eq 0 ] || return 0
		if [ "$verb" = ADD ]; then
			prev=$(jq -c --arg v "$(jq -r '.cniVersion // ""' <<<"$list")" \
				'if (.cniVersion // "") == "" then .cniVersion = $v else . end' <<<"$output") ||
				{ status=90 && return 0; }
		fi
	done
	case $verb in
	ADD) printf '%s' "$output" >"$kept" ;;
	DEL) rm -f "$kept" ;;
	esac
}

# chain_ok VERB CONFLIST ID [IFNAME]: the whole list succeeds.
chain_ok() {
	chain "$@"
	[ "$status" -eq 0 ] || show "chain $1 for $3 should succeed"
}

# ---- packets ----------------------------------------------------------------------------------

# True when something listens. /proc/net is the namespace's own.
listening() {
	local hex
	printf -v hex '%04X' "$2"
	case $3 in
	sctp) inside "$1" grep -Eq "(^| +)$2 " /proc/net/sctp/eps ;;
	*) inside "$1" sh -c "cat /proc/net/$3 /proc/net/${3}6 2>/dev/null | grep -q ' [0-9A-F]*:$hex 0*:0000 '" ;;
	esac
}

# serve NAME PORT [tcp|udp|sctp] [-6]: a server in namespace NAME ("host": the node) that answers
# every connection or datagram with "NAME <peer address>". Returns once it listens.
serve() {
	local name=$1 port=$2 proto=tcp fam=4 how
	shift 2
	while [ $# -gt 0 ]; do
		case $1 in -6) fam=6 ;; *) proto=$1 ;; esac
		shift
	done
	case $proto in udp) how=UDP$fam-RECVFROM ;; *) how=${proto^^}$fam-LISTEN ;; esac
	[ $fam = 4 ] || port+=,ipv6only=1
	spawn "$name" socat "$how:$port,fork,reuseaddr" "SYSTEM:read x; echo $name \$SOCAT_PEERADDR"
	wait_for 60 listening "$name" "${port%%,*}" "$proto"
}

# ask FROM tcp|udp|sctp ADDR PORT: sends a line from namespace FROM and prints the answer, for which it
# waits long: a busy machine is slow. knock is the same where no answer is expected, and gives up soon.
ask() {
	local line wait=${ASK_WAIT:-30}
	if [ "$2" = sctp ]; then
		case $3 in
		*:*) line=$(inside "$1" timeout "$wait" socat -t "$wait" - "SCTP6-CONNECT:[$3]:$4" <<<hello 2>/dev/null) ;;
		*) line=$(inside "$1" timeout "$wait" socat -t "$wait" - "SCTP4-CONNECT:$3:$4" <<<hello 2>/dev/null) ;;
		esac || :
	else
		line=$(inside "$1" timeout "$wait" bash -c 'exec 9<>"/dev/$1/$2/$3" && echo hello >&9 &&
			head -n 1 <&9' ask "$2" "$3" "$4" 2>/dev/null) || :
	fi
	case $line in
	*' ['*']') echo "${line%% *} $(ip6_short "${line#* }")" ;;
	?*) echo "$line" ;;
	esac
}

knock() { ASK_WAIT=2 ask "$@"; }

# [2001:0db8:0000:...:0001] as 2001:db8::1.
ip6_short() {
	local a=${1#[} g out='' best=-1 len=0 i run
	IFS=: read -r -a g <<<"${a%]}"
	[ ${#g[@]} -eq 8 ] || { echo "${a%]}" && return; }
	for i in {0..7}; do
		printf -v "g[$i]" %x "0x${g[$i]}"
		run=$i
		while [ $run -lt 8 ] && [ $((0x${g[$run]})) -eq 0 ]; do run=$((run + 1)); done
		[ $((run - i)) -le $len ] || { best=$i && len=$((run - i)); }
	done
	[ $len -gt 1 ] || best=-1
	for ((i = 0; i < 8; i++)); do
		if [ $i -eq $best ]; then
			out+=::
			i=$((i + len - 1))
		else
			out+=${out:+:}${g[$i]}
		fi
	done
	echo "${out/:::/::}"
}
