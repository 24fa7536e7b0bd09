# What the tests of protocol share.
#
# The protocol, seen from outside, of every plugin in the directory: environment, stdin, versions,
# verbs, errors, output, delegation. CNI spec 1.1.0, section 2, and what the Go plugins make of it.

load helpers

setup() { sandbox; }
teardown() { sandbox_end; }

ALL="0.1.0 0.2.0 0.3.0 0.3.1 0.4.0 1.0.0 1.1.0"

# Every plugin there is.
plugins() {
	local f
	for f in "$CNI_PLUGIN_DIR"/*; do
		case ${f##*/} in cnibox | cnitool | *.* | LICENSE) continue ;; esac
		[ -x "$f" ] && echo "${f##*/}"
	done
}

# The versions plugin $1 supports. Go plugins before 1.5 stop at 1.0.0.
supported() {
	local v from=0.1.0 on='' last=1.1.0
	is_cnibox || last=$(CNI_COMMAND=VERSION "$CNI_PLUGIN_DIR/loopback" | jq -r .cniVersion)
	case $1 in bandwidth) from=0.3.0 ;; vrf) from=0.3.1 ;; firewall) from=0.4.0 ;; esac
	for v in $ALL; do
		[ "$v" != "$from" ] || on=yes
		[ -z "$on" ] || echo "$v"
		[ "$v" != "$last" ] || break
	done
}

# raw PLUGIN [VARIABLE=VALUE]... <stdin: a call with just these variables.
raw() {
	status=0
	timeout -k 2 60 nsenter -t "$HOLDER" -m -n -- env -u CNI_PLUGIN_DIR "${@:2}" \
		"$CNI_PLUGIN_DIR/$1" >"$T/stdout" 2>"$T/stderr" 3>&- || status=$?
	taken
}

# The variables of an attachment, for raw.
attachment() { ATT=(CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 "CNI_PATH=$CNI_PLUGIN_DIR"); }

# answers CODE MSG DETAILS [WHAT]: the last call failed with exactly this error object; * as DETAILS
# stands for any.
answers() {
	local got
	got=$(jq -rs --arg any "$3" 'if length == 1 then .[0] | "\(.code) \(.msg) (\(if $any == "*"
		then "*" else .details // "" end))" else "\(length) documents" end' \
		<"$T/stdout" 2>/dev/null) || got='no JSON'
	[ "$status" = 1 ] && [ "$got" = "$1 $2 ($3)" ] || show "${4-the call} should answer $1 $2 ($3)"
}
