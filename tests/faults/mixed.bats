# A node in mid-life: the Go plugins (Debian's) and cnibox take turns on the same attachments. Nothing
# is lost, nothing given twice, and when all is deleted nothing is left of either.

load ../bats/helpers

setup() {
	sandbox
	only_cnibox "this is about both"
	GO=${GO_PLUGINS:-/usr/lib/cni}
	[ -x "$GO/bridge" ] && [ ! -L "$GO/bridge" ] || skip "no Go plugins in $GO"
	host iptables -V >/dev/null 2>&1 || skip "the Go plugins need iptables"
	OURS=$CNI_PLUGIN_DIR
	netns c1 && netns c2 && netns c3 && netns c4
	netns client
	host sh -c 'ip link add out type veth peer name in netns client && ip addr add 192.0.2.1/24 dev out &&
		ip link set out up && ip -n client addr add 192.0.2.2/24 dev in && ip -n client link set in up'
}
teardown() { sandbox_end; }

LIST='{"cniVersion":"1.0.0","name":"dbnet","plugins":[
	{"type":"bridge","bridge":"cni0","isGateway":true,"ipMasq":true,"ipam":{"type":"host-local","subnet":"10.1.0.0/16","routes":[{"dst":"0.0.0.0/0"}]}},
	{"type":"tuning","capabilities":{"mac":true},"sysctl":{"net.core.somaxconn":"500"}},
	{"type":"portmap","capabilities":{"portMappings":true}},
	{"type":"bandwidth","capabilities":{"bandwidth":true}}]}'

# caps N: capability arguments of container cN.
caps() {
	echo "{\"mac\":\"02:00:00:00:00:0$1\",\"portMappings\":[{\"hostPort\":808$1,\"containerPort\":80,\"protocol\":\"tcp\"},{\"hostPort\":535$1,\"containerPort\":53,\"protocol\":\"udp\"}],\"bandwidth\":{\"ingressRate\":8000000,\"ingressBurst\":8000000,\"egressRate\":8000000,\"egressBurst\":8000000}}"
}

# by WHO VERB N: the chain for cN, by the plugins in directory WHO.
by() {
	local CNI_PLUGIN_DIR=$1 CAP_ARGS
	CAP_ARGS=$(caps "$3")
	chain_ok "$2" "$LIST" "c$3"
}

# reaches N: the container's port is reached from outside, under its own host port.
reaches() { same "answer of c$1" "c$1 192.0.2.2" "$(ask client tcp 192.0.2.1 "808$1")"; }

addresses() { host sh -c 'ls /var/lib/cni/networks/dbnet | grep -v "^l"' | sort | paste -sd' '; }

# What is left but the bridge, the client's link and the empty chains that the Go plugins share.
no_trace() {
	nothing_left cni0 out
	same "rules" '' "$(host sh -c 'nft list ruleset | grep -E "10\.1\.0|dbnet|CNI-[0-9a-f]{24}|CNI-(DN|SN)-|cnibox" || :')"
	same "files" '' "$(host sh -c 'find /run/cni /var/lib/cni -type f ! -name lock ! -name "last_reserved*"')"
}

@test "made by Go: checked, kept alive among ours, and deleted by cnibox" {
	by "$GO" ADD 1
	by "$GO" ADD 2
	by "$OURS" ADD 3
	by "$OURS" ADD 4
	same addresses '10.1.0.2 10.1.0.3 10.1.0.4 10.1.0.5' "$(addresses)"
	for n in 1 2 3 4; do
		serve c$n 80
		reaches $n
	done
	for n in 1 2 3 4; do by "$OURS" CHECK $n; done
	by "$OURS" DEL 1
	by "$OURS" DEL 4
	reaches 2
	reaches 3
	same addresses '10.1.0.3 10.1.0.4' "$(addresses)"
	by "$OURS" ADD 1
	reaches 1
	by "$OURS" DEL 2
	by "$OURS" DEL 1
	by "$OURS" DEL 3
	no_trace
}

# Go's bridge refuses to end the masquerading of a container that has no iptables chain of its own,
# after everything else is done: for the way back the list is without.
@test "made by cnibox: the Go plugins delete what is theirs to know, and cnibox the rest" {
	LIST=${LIST/'"ipMasq":true,'/}
	by "$OURS" ADD 1
	by "$OURS" ADD 2
	by "$GO" ADD 3
	same addresses '10.1.0.2 10.1.0.3 10.1.0.4' "$(addresses)"
	for n in 1 2 3; do
		serve c$n 80
		reaches $n
	done
	by "$GO" DEL 1
	by "$GO" DEL 3
	same addresses 10.1.0.3 "$(addresses)"
	same "link of c1" '' "$(inside c1 ip -o link show type veth)"
	reaches 2
	# The port of c1 leads nowhere, and is free once its sandbox is gone.
	host ip netns del c1
	netns c5
	CAP_ARGS=$(caps 1) chain_ok ADD "$LIST" c5
	serve c5 80
	same "answer of c5" "c5 192.0.2.2" "$(ask client tcp 192.0.2.1 8081)"
	CAP_ARGS=$(caps 1) chain_ok DEL "$LIST" c5
	# The second DEL, ours, takes what the first could not know of.
	by "$OURS" DEL 1
	by "$OURS" DEL 3
	by "$OURS" DEL 2
	no_trace
}

@test "with masquerading Go's DEL has done the rest before it complains, and ours ends it" {
	by "$OURS" ADD 1
	CNI_PLUGIN_DIR=$GO CAP_ARGS=$(caps 1) chain DEL "$LIST" c1
	[ "$status" = 0 ] || holds '.msg | test("iptables.*does not exist"; "s")'
	same addresses '' "$(addresses)"
	same "link of c1" '' "$(inside c1 ip -o link show type veth)"
	by "$OURS" DEL 1
	no_trace
}

@test "each deletes the other's address and link, whoever comes first" {
	LIST=${LIST/'"ipMasq":true,'/}
	for n in 1 2 3 4; do
		by "$GO" ADD $n
		by "$OURS" DEL $n
		by "$OURS" ADD $n
		by "$GO" DEL $n
		by "$OURS" DEL $n
	done
	no_trace
	same addresses '' "$(addresses)"
}

@test "GC of the chain collects what the Go plugins left of containers that are gone" {
	local LIST=${LIST/1.0.0/1.1.0} id
	LIST=${LIST/1.1.0/1.0.0} by "$GO" ADD 1
	LIST=${LIST/1.1.0/1.0.0} by "$GO" ADD 2
	by "$OURS" ADD 3
	host sh -c 'umount -l /run/netns/c1; rm /run/netns/c1'
	wait_for 60 host sh -c 'test $(ip -o link show type veth master cni0 | wc -l) = 2'
	VALID='[{"containerID":"c2","ifname":"eth0"},{"containerID":"c3","ifname":"eth0"}]' chain_ok GC "$LIST" c1
	same addresses '10.1.0.3 10.1.0.4' "$(addresses)"
	serve c2 80
	serve c3 80
	reaches 2
	reaches 3
	netns c1
	by "$OURS" ADD 1
	serve c1 80
	reaches 1
	for n in 1 2 3; do by "$OURS" DEL $n; done
	nothing_left cni0 out
}
