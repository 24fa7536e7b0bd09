# What the tests of cnitool share. Load after helpers; call tool_setup after sandbox.
#
#   CNITOOL   the program under test (default: the one beside the plugins, else the build's). With
#             the Go cnitool v1.3.0 here, the tests that are not only_ours prove themselves right.

if [ -z "${CNITOOL:-}" ]; then
	CNITOOL=$CNI_PLUGIN_DIR/cnitool
	[ -e "$CNITOOL" ] || CNITOOL=$CNIBOX_BUILD/plugins/cnitool
fi

tool_setup() {
	NET=$T/net.d BIN=$T/bin
	mkdir "$NET" "$BIN"
}

# True when CNITOOL is cnibox.
is_ours() {
	local f
	f=$(readlink -f "$CNITOOL")
	[ "${f##*/}" = cnibox ]
}

# only_ours REASON: skips the test when CNITOOL is another implementation.
only_ours() { is_ours || skip "not our cnitool: $1"; }

# The Go plugins, for mixed lists; GO_PLUGINS names another place.
go_plugin() {
	local d=${GO_PLUGINS:-/usr/lib/cni}
	[ -x "$d/$1" ] && [ ! -L "$d/$1" ] || skip "no Go plugin $1 in $d"
	GO_PLUGIN=$d/$1
}

# The Go cnitool; GO_CNITOOL names it when it is not on PATH.
go_cnitool() {
	local f real
	for f in "${GO_CNITOOL:-}" $(type -aP cnitool || :); do
		real=$(readlink -f "$f") || continue
		[ -x "$real" ] && [ "${real##*/}" != cnibox ] || continue
		GO_CNITOOL=$f
		return
	done
	skip "no Go cnitool: go install github.com/containernetworking/cni/cnitool@v1.3.0, then GO_CNITOOL or PATH"
}

# tool ARG...: one call on the node. NETCONFPATH and CNI_PATH are those of the test if not set; other
# variables are the caller's (CAP_ARGS=... tool add ...). Sets status, output and stderr.
tool() {
	status=0
	NETCONFPATH=${NETCONFPATH-$NET} CNI_PATH=${CNI_PATH-$BIN:$CNI_PLUGIN_DIR} \
		timeout -k 2 "${CALL_TIMEOUT:-60}" nsenter -t "$HOLDER" -m -n -- "$CNITOOL" "$@" \
		>"$T/stdout" 2>"$T/stderr" </dev/null 3>&- || status=$?
	taken
}

# works ARG...: the call succeeds.
works() {
	tool "$@"
	[ "$status" -eq 0 ] || show "cnitool $* should succeed"
}

# silent ARG...: it succeeds and prints nothing.
silent() {
	works "$@" && [ -z "$output" ] || show "cnitool $* should print nothing"
}

# dies TEXT ARG...: exit status 1, nothing on stdout, and the last line of stderr is TEXT.
dies() {
	tool "${@:2}"
	[ "$status" -eq 1 ] || show "cnitool ${*:2} should exit with 1" || return 1
	[ -z "$output" ] || show "cnitool ${*:2} should print nothing" || return 1
	same "last line of stderr" "$1" "${stderr##*$'\n'}"
}

# says REGEX: about the stderr of the last call.
says() { [[ $stderr =~ $1 ]] || show "stderr should match /$1/"; }

# double NAME...: plugins that note each call in $T/calls, and what they were given in
# $T/NAME.VERB.stdin and .env, then do what `does` says. ADD prints $T/NAME.result, by default a
# result with an interface of the plugin's name.
double() {
	local name
	for name; do
		cat >"$BIN/$name" <<EOS
#!/bin/sh
T=$T me=\${0##*/}
at=$T/\$me.\$CNI_COMMAND
[ -e "\$at.deaf" ] || cat >"\$at.stdin"
env >"\$at.env"
echo "\$CNI_COMMAND \$me" >>$T/calls
[ ! -e "\$at.does" ] || . "\$at.does"
case \$CNI_COMMAND in
ADD)
	[ ! -e $T/\$me.result ] || exec cat $T/\$me.result
	echo "{\"cniVersion\":\"1.0.0\",\"interfaces\":[{\"name\":\"\$me\"}]}" ;;
VERSION)
	echo '{"cniVersion":"1.0.0","supportedVersions":["0.3.1","0.4.0","1.0.0","1.1.0"]}' ;;
esac
EOS
		chmod +x "$BIN/$name"
	done
}

# does NAME VERB SCRIPT: what the double does on that verb, before it answers. "" for nothing special.
does() { printf '%s\n' "$3" >"$T/$1.$2.does"; }

# refuses NAME VERB [CODE [MSG]]: it fails with an error object.
refuses() { does "$1" "$2" "echo '{\"code\":${3:-11},\"msg\":\"${4:-no $1}\"}'; exit 1"; }

# called "VERB NAME,VERB NAME...": the calls since the last time.
called() {
	local got=''
	[ ! -e "$T/calls" ] || got=$(paste -sd, "$T/calls")
	rm -f "$T/calls"
	same "calls" "$1" "$got"
}

# given NAME VERB FILTER EXPECTED: about the stdin of the last such call.
given() { jq_is "$3" "$4" <"$T/$1.$2.stdin" || { echo "in the stdin of $2 $1" >&2 && return 1; }; }

# env_of NAME VERB VARIABLE: what the double found in its environment; "(unset)" when it is not there.
env_of() { sed -n "s/^$3=//p;t" "$T/$1.$2.env" | grep . || { grep -q "^$3=" "$T/$1.$2.env" || echo '(unset)'; }; }

# list NAME PLUGINS [KEY:VALUE...]: writes $NET/NAME.conflist; PLUGINS are types, or objects.
list() {
	local p plugins='' extra=''
	for p in $2; do
		case $p in
		'{'*) plugins+=${plugins:+, }$p ;;
		*) plugins+="${plugins:+, }{\"type\": \"$p\"}" ;;
		esac
	done
	for p in "${@:3}"; do extra+=", $p"; done
	case $extra in *'"cniVersion"'*) ;; *) extra=", \"cniVersion\": \"1.0.0\"$extra" ;; esac
	printf '{"name": "%s", "plugins": [%s]%s}\n' "$1" "$plugins" "$extra" >"$NET/$1.conflist"
}

# entry [NAME]: the file of the result cache for network NAME (any), or nothing.
entry() { host sh -c 'ls -d /var/lib/cni/results/'"${1:-}"'* 2>/dev/null' || :; }

# cached FILTER EXPECTED: about the only entry there is.
cached() { host_is "$1" "$2" sh -c 'cat /var/lib/cni/results/*'; }

no_entry() { same "cache entries" '' "$(entry)"; }
