# Kernels that lack parts of nf_tables: what is missing is said at once and by name, STATUS knows it before ADD does, and
# nothing is left over. lacking.c stands in for the kernel.

load helpers

setup_file() {
	${CC:-cc} -std=gnu17 -O1 -Wall -shared -fPIC -o "$BATS_FILE_TMPDIR/lacking.so" "$BATS_TEST_DIRNAME/lacking.c" -ldl
}

setup() {
	need_applet bridge host-local portmap
	only_cnibox "the Go plugins shell out or speak through other libraries"
	sandbox
	netns c1
	# Each plugin as it is, and one that sees a kernel that lacks $LACKING.
	mkdir "$T/lacking"
	for p in bridge portmap; do
		printf '#!/bin/sh\nASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD="%s" exec "%s/%s"\n' \
			"$BATS_FILE_TMPDIR/lacking.so" "$CNI_PLUGIN_DIR" "$p" >"$T/lacking/$p"
		chmod +x "$T/lacking/$p"
	done
	ldd "$(readlink -f "$CNI_PLUGIN_DIR/bridge")" >/dev/null 2>&1 || skip "a static program loads no library"
	export CNI_PATH=$CNI_PLUGIN_DIR
	CALL_TIMEOUT=5
}
teardown() { sandbox_end; }

# lacking WHAT VERB PLUGIN <config; then `failed CODE REGEX` or status.
lacking() {
	local -x LACKING=$1
	cni "$2" "$T/lacking/$3" c1
}

MASQ='{"cniVersion":"1.1.0","name":"n","type":"bridge","bridge":"br0","isGateway":true,"ipMasq":true,
	"ipam":{"type":"host-local","subnet":"10.9.0.0/24"}}'
SPOOF='{"cniVersion":"1.1.0","name":"n","type":"bridge","bridge":"br0","macspoofchk":true}'
PLAIN='{"cniVersion":"1.1.0","name":"n","type":"bridge","bridge":"br0"}'
PORT='{"cniVersion":"1.1.0","name":"n","type":"portmap","runtimeConfig":{"portMappings":[{"hostPort":8080,
	"containerPort":80}]},"prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"eth0","sandbox":"/run/netns/c1"}],
	"ips":[{"address":"10.9.0.2/24","interface":0}]}}'

# needs WHAT MODULE PLUGIN CONFIG: STATUS and ADD say so in one attempt; DEL and GC have nothing to do.
needs() {
	lacking "$1" STATUS "$3" <<<"$4"
	failed 50 "module $2\\)" "STATUS without $1" || return
	lacking "$1" ADD "$3" <<<"$4"
	failed 100 "module $2\\)" "ADD without $1" || return
	nothing_left br0 || return
	lacking "$1" DEL "$3" <<<"$4"
	[ "$status" -eq 0 ] || show "DEL without $1" || return
	lacking "$1" GC "$3" <<<"$(jq -c '.["cni.dev/valid-attachments"] = []' <<<"$4")"
	[ "$status" -eq 0 ] || show "GC without $1" || return
	same "ruleset without $1" '' "$(host nft list ruleset)"
}

# both: on kernels that say which attribute they mean, and on those that do not.
both() {
	needs "$@" && LACKING_SILENT=1 needs "$@"
}

@test "ipMasq says what the kernel lacks" {
	both nfnetlink nfnetlink bridge "$MASQ"
	both nf_tables nf_tables bridge "$MASQ"
	both chain:nat nft_chain_nat bridge "$MASQ"
	both expr:masq nft_masq bridge "$MASQ"
}

@test "macspoofchk says what the kernel lacks" {
	both nfnetlink nfnetlink bridge "$SPOOF"
	both nf_tables nf_tables bridge "$SPOOF"
	both chain:filter nft_chain_filter bridge "$SPOOF"
}

@test "portmap says what the kernel lacks" {
	both nfnetlink nfnetlink portmap "$PORT"
	both nf_tables nf_tables portmap "$PORT"
	both chain:nat nft_chain_nat portmap "$PORT"
	needs expr:fib nft_fib_inet portmap "$PORT"
	needs expr:nat nft_nat portmap "$PORT"
	needs expr:masq nft_masq portmap "$PORT"
}

@test "a bridge that filters nothing needs no nf_tables" {
	for what in nfnetlink nf_tables; do
		for verb in STATUS ADD DEL; do
			lacking $what $verb bridge <<<"$PLAIN"
			[ "$status" -eq 0 ] || show "$verb without $what"
		done
	done
}

@test "STATUS leaves nothing, and says yes where ADD will work, with rules there and without" {
	local before
	for conf in "$MASQ" "$SPOOF"; do
		ok STATUS bridge <<<"$conf"
		same "ruleset" '' "$(host nft list ruleset)"
		ok ADD bridge c1 <<<"$conf"
		before=$(host nft list ruleset)
		ok STATUS bridge <<<"$conf"
		same "ruleset" "$before" "$(host nft list ruleset)"
		ok DEL bridge c1 <<<"$conf"
	done
	ok STATUS portmap <<<"$PORT"
	same "ruleset" '' "$(host nft list ruleset)"
	ok ADD portmap c1 <<<"$PORT"
	before=$(host nft list ruleset)
	ok STATUS portmap <<<"$PORT"
	same "ruleset" "$before" "$(host nft list ruleset)"
	ok DEL portmap c1 <<<"$PORT"
}
