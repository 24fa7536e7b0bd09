# cnitool: check, status and version, the cache, an ADD that fails.

load helpers
load cnitool

setup() { sandbox && tool_setup; }
teardown() { sandbox_end; }

# ---- check, status, version -------------------------------------------------------------------

@test "CHECK is for 0.4.0 and later, and not when the list says so" {
	double a
	list n a '"cniVersion": "0.3.1"'
	dies 'configuration version "0.3.1" does not support the CHECK command' check n /x
	list n a '"disableCheck": true'
	silent check n /x
	list n a '"disableCheck": "TRUE"'
	silent check n /x
	called ''
	list n a '"disableCheck": "false"'
	silent check n /x
	called 'CHECK a'
	given a CHECK 'has("prevResult")' false
}

@test "CHECK stops at the first failure; its message is not wrapped" {
	double a b c
	refuses b CHECK 101 'b is not as it was'
	list n 'a b c'
	works add n /x
	called 'ADD a,ADD b,ADD c'
	dies 'b is not as it was' check n /x
	called 'CHECK a,CHECK b'
}

@test "CHECK repeats the arguments of the ADD unless it is given others" {
	only_ours "the Go tool takes those of the call alone"
	double a
	list n '{"type":"a","capabilities":{"k":true}}'
	CNI_ARGS=A=1 CAP_ARGS='{"k":1}' works add n /x
	works check n /x
	same CNI_ARGS A=1 "$(env_of a CHECK CNI_ARGS)"
	given a CHECK .runtimeConfig '{"k":1}'
	CNI_ARGS=A=2 CAP_ARGS='{"k":2}' works check n /x
	same CNI_ARGS A=2 "$(env_of a CHECK CNI_ARGS)"
	given a CHECK .runtimeConfig '{"k":2}'
}

@test "STATUS: from 1.1.0 on, every plugin, with no attachment" {
	double a b
	list n 'a b'
	silent status n /x
	called ''
	list n 'a b' '"cniVersion": "1.1.0"'
	CNI_ARGS=A=1 silent status n /x
	called 'STATUS a,STATUS b'
	for v in CNI_CONTAINERID CNI_NETNS CNI_IFNAME CNI_ARGS; do
		same "$v" '' "$(env_of a STATUS $v)"
	done
	given a STATUS 'keys' '["cniVersion","name","type"]'
	refuses a STATUS 51 'few left'
	dies 'few left' status n /x
	called 'STATUS a'
}

@test "gc and status need no namespace" {
	only_ours "the Go tool wants one"
	double a
	list n a '"cniVersion": "1.1.0"'
	silent status n
	silent gc n --all
	called 'STATUS a,GC a'
}

@test "version prints what each plugin supports, and fails where the list's version is missing" {
	only_ours "the Go tool has no such command"
	double a old
	does old VERSION 'echo "{\"code\":4,\"msg\":\"unknown CNI_COMMAND: VERSION\"}"; exit 1'
	list n 'a'
	works version n
	same stdout 'a: 0.3.1, 0.4.0, 1.0.0, 1.1.0' "$output"
	same CNI_NETNS dummy "$(env_of a VERSION CNI_NETNS)"
	given a VERSION . '{"cniVersion":"1.1.0"}'
	list n 'a old nosuch'
	tool version n
	same status 1 "$status"
	same "what can be said" 'a: 0.3.1, 0.4.0, 1.0.0, 1.1.0' "$output"
	says 'plugin old does not support config version "1.0.0"'
	if is_cnibox; then
		list n 'loopback'
		works version n
		same stdout 'loopback: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0' "$output"
	fi
}

# ---- the cache --------------------------------------------------------------------------------

@test "an entry is libcni's, readable for root alone" {
	double a
	list n '{"type":"a","capabilities":{"k":true}}'
	CNI_IFNAME=net1 CNI_ARGS='B=2;A=1' CAP_ARGS='{"z":1,"k":[true]}' works add n /var/run/netns/blue
	same "the file" /var/lib/cni/results/n-cnitool-296747069b8a02dc4e2a-net1 "$(entry)"
	same "its bytes" "{\"kind\":\"cniCacheV1\",\"containerId\":\"cnitool-296747069b8a02dc4e2a\",\"config\":\"$(base64 -w0 "$NET/n.conflist")\",\"ifName\":\"net1\",\"networkName\":\"n\",\"netns\":\"/var/run/netns/blue\",\"cniArgs\":[[\"B\",\"2\"],[\"A\",\"1\"]],\"capabilityArgs\":{\"k\":[true],\"z\":1},\"result\":{\"cniVersion\":\"1.0.0\",\"interfaces\":[{\"name\":\"a\"}]}}" \
		"$(host cat "$(entry)")"
	same modes '600 700' "$(host stat -c %a "$(entry)" /var/lib/cni/results | paste -sd' ')"
}

@test "DEL uses the configuration and the arguments of the ADD, whatever the files say now" {
	only_ours "the Go tool takes the current ones"
	double a b
	list n '{"type":"a","x":1,"capabilities":{"k":true}}'
	CNI_ARGS='A=1' CAP_ARGS='{"k":9007199254740993}' works add n /x
	list n '{"type":"b","x":2}' '"cniVersion": "1.1.0"'
	works del n /x
	called 'ADD a,DEL a'
	given a DEL '[.x,.cniVersion]' '[1,"1.0.0"]'
	grep -qF '"runtimeConfig":{"k":9007199254740993}' "$T/a.DEL.stdin"
	same CNI_ARGS A=1 "$(env_of a DEL CNI_ARGS)"
	no_entry
	works add n /x
	rm "$NET/n.conflist"
	works del n /x
	called 'ADD b,DEL b'
	no_entry
}

@test "what the call of DEL names beats what the cache remembers" {
	double a
	list n '{"type":"a","capabilities":{"k":true}}'
	CNI_ARGS='A=1' CAP_ARGS='{"k":1}' works add n /x
	CNI_ARGS='B=2' CAP_ARGS='{"k":2}' works del n /x
	same CNI_ARGS B=2 "$(env_of a DEL CNI_ARGS)"
	given a DEL .runtimeConfig '{"k":2}'
}

@test "DEL without an attachment, and a second DEL, are no errors" {
	double a b
	list n 'a b'
	silent del n /x
	works add n /x
	silent del n /x
	silent del n /x
	called 'DEL b,DEL a,ADD a,ADD b,DEL b,DEL a,DEL b,DEL a'
	given a DEL 'has("prevResult")' false
}

@test "DEL of a list older than 0.4.0 gets no prevResult" {
	double a
	echo '{"cniVersion":"0.3.1","interfaces":[{"name":"a"}]}' >"$T/a.result"
	list n a '"cniVersion": "0.3.1"'
	works add n /x
	works del n /x
	given a DEL 'has("prevResult")' false
}

@test "DEL asks every plugin, reports the first failure and keeps the entry" {
	only_ours "libcni stops at the first failure"
	double a b c
	list n 'a b c'
	works add n /x
	called 'ADD a,ADD b,ADD c'
	refuses c DEL 5 'c stays'
	refuses b DEL 5 'b stays'
	tool del n /x
	same status 1 "$status"
	says 'plugin type="c" failed \(delete\): c stays'
	[[ ${stderr##*$'\n'} == 'plugin type="c" failed (delete): c stays'* ]] || show "the first failure"
	called 'DEL c,DEL b,DEL a'
	[ -n "$(entry n-)" ]
	does c DEL :
	does b DEL :
	works del n /x
	no_entry
}

@test "a torn cache entry does not block DEL or CHECK, and goes with the attachment" {
	local good f text check='CHECK a,'
	double a
	list n a
	works add n /x
	f=$(entry)
	good=$(host cat "$f")
	called 'ADD a'
	is_ours || check='' # libcni is not tolerant in CHECK
	for text in '' ' ' '{' "${good:0:100}" "${good:0:-1}" "$good$good" null '[]' '{}' '"x"' \
		'{"kind":"cniCacheV9"}' "${good/cniCacheV1/other}" "${good/\"config\":\"/\"config\":\"*}" \
		'{"kind":"cniCacheV1"}' '{"kind":7,"ifName":[]}' \
		"$(head -c 3000 /dev/urandom | base64 -w0)"; do
		printf '%s' "$text" >"$T/torn"
		host cp "$T/torn" "$f"
		[ -z "$check" ] || works check n /x
		works del n /x
		called "${check}DEL a"
		no_entry
	done
	head -c 5000 /dev/urandom >"$T/torn"
	host cp "$T/torn" "$f"
	works del n /x
	called 'DEL a'
	no_entry
	host mkdir "$f"
	tool del n /x
	called 'DEL a'
}

@test "a cached result that cannot be used does not block DEL" {
	local f good
	double a
	list n a
	for bad in '"cniVersion":"9.9.9"' '"cniVersion":7' '"ips":[{"address":"rubbish"}]' '"ips":[null]' \
		'"interfaces":{}'; do
		works add n /x
		f=$(entry)
		host sed -i "s|\"result\":.*|\"result\":{$bad}}|" "$f"
		works del n /x
		called 'ADD a,DEL a'
		no_entry
	done
}

@test "the bare result of an old libcni is understood" {
	double a
	list n a
	echo '{"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.1.0.2/16"}],"dns":{}}' >"$T/legacy"
	host mkdir -p /var/lib/cni/results
	host cp "$T/legacy" /var/lib/cni/results/n-cnitool-296747069b8a02dc4e2a-eth0
	works check n /var/run/netns/blue
	given a CHECK .prevResult '{"cniVersion":"1.0.0","ips":[{"address":"10.1.0.2/16"}]}'
	works del n /var/run/netns/blue
	given a DEL .prevResult '{"cniVersion":"1.0.0","ips":[{"address":"10.1.0.2/16"}]}'
	no_entry
}

@test "a-b of c and a of b-c share a file name, but never an attachment" {
	only_ours "libcni looks at the name alone"
	double a
	list a a
	list a-b a
	works add a /x --id b-c
	called 'ADD a'
	dies 'the result cache has no room for this attachment: it belongs to network a, container b-c, interface eth0' \
		add a-b /x --id c
	works check a-b /x --id c
	says 'belongs to network a'
	given a CHECK 'has("prevResult")' false
	works del a-b /x --id c
	called 'CHECK a,DEL a'
	same "the entry" /var/lib/cni/results/a-b-c-eth0 "$(entry)"
	works gc a-b --all
	cached .networkName a
	works del a /x --id b-c
	no_entry
}

@test "a result that cannot be cached is an error, and the ADD is undone" {
	only_ours "libcni leaves the network configured"
	double a b
	list n 'a b'
	does b ADD 'rm -rf /var/lib/cni/results; echo >/var/lib/cni/results'
	tool add n /x
	same status 1 "$status"
	same stdout '' "$output"
	says 'failed to set network "n" cached result: '
	called 'ADD a,ADD b,DEL b,DEL a'
	does b ADD :
	tool add n /x
	same "status where it cannot even begin" 1 "$status"
	called ''
}

@test "names too long for a file name are refused before anything is done" {
	only_ours "libcni leaves the network configured"
	local id
	printf -v id '%0250d' 0
	double a
	list n a
	tool add n /x --id "$id"
	same status 1 "$status"
	called ''
}

@test "an unreadable cache directory is reported by gc; the plugins do their part" {
	only_ours "libcni takes it for an empty one"
	double a
	list n a '"cniVersion": "1.1.0"'
	host sh -c 'rm -rf /var/lib/cni/results; echo >/var/lib/cni/results'
	tool gc n --all
	same status 1 "$status"
	says 'result cache'
	called 'GC a'
}

# ---- a failing ADD ----------------------------------------------------------------------------

@test "when an ADD fails the plugins called get a DEL in reverse, and the first failure is reported" {
	only_ours "libcni leaves that to its caller"
	double a b c
	list n 'a b c'
	refuses b ADD 11 'b is busy'
	dies 'plugin type="b" failed (add): b is busy' add n /x
	called 'ADD a,ADD b,DEL b,DEL a'
	given a DEL .prevResult.interfaces '[{"name":"a"}]'
	no_entry
	CNI_ARGS=A=1 CAP_ARGS='{"k":1}' CNI_IFNAME=net3 tool add n /x
	same "arguments of that DEL" "A=1 net3 $(env_of a ADD CNI_CONTAINERID)" \
		"$(env_of a DEL CNI_ARGS) $(env_of a DEL CNI_IFNAME) $(env_of a DEL CNI_CONTAINERID)"
}

@test "when that DEL fails too, the first failure counts and the attempt stays on record" {
	only_ours "libcni leaves that to its caller"
	double a b
	list n 'a b'
	refuses b ADD 11 'b is busy'
	refuses a DEL 5 'a stays'
	dies 'plugin type="b" failed (add): b is busy' add n /x
	called 'ADD a,ADD b,DEL b,DEL a'
	cached '[.networkName, has("result")]' '["n", false]'
	does a DEL :
	works gc n --all
	called 'DEL b,DEL a'
	no_entry
}

@test "a plugin that is not there fails the ADD; what was done is undone and nothing stays on record" {
	only_ours "libcni leaves that to its caller"
	double a b
	list n 'a nosuch b'
	CNI_PATH=$BIN:/nowhere dies "plugin type=\"nosuch\" failed (add): failed to find plugin \"nosuch\" in path [$BIN /nowhere]" add n /x
	called 'ADD a,DEL a'
	no_entry
}

@test "an ADD that was killed is on record for DEL and GC" {
	only_ours "libcni writes the entry at the end"
	double a b
	list n 'a b'
	does b ADD 'kill -9 $PPID; sleep 0.1'
	tool add n /x
	same status 137 "$status"
	cached '[.networkName, .netns, has("result")]' '["n", "/x", false]'
	works gc n --all
	called 'ADD a,ADD b,DEL b,DEL a'
	no_entry
	tool add n /x
	works del n /x
	called 'ADD a,ADD b,DEL b,DEL a'
	no_entry
}

@test "a second ADD of what is attached is refused and leaves it alive" {
	only_ours "libcni runs it, and its caller then deletes the living attachment"
	need_applet bridge host-local
	netns c1
	list n '{"type":"bridge","bridge":"br0","isGateway":true,"ipam":{"type":"host-local","subnet":"10.9.0.0/24"}}'
	works add n /run/netns/c1
	tool add n /run/netns/c1
	same status 1 "$status"
	same stdout '' "$output"
	says 'eth0 is attached to network "n" already'
	inside c1 ping -c 1 -W 2 10.9.0.1
	works check n /run/netns/c1
	works del n /run/netns/c1
	nothing_left br0
}

@test "an entry of a namespace that is gone does not stand in the way" {
	need_applet bridge host-local
	netns c1
	list n '{"type":"bridge","bridge":"br0","isGateway":true,"ipam":{"type":"host-local","subnet":"10.9.0.0/24"}}'
	works add n /run/netns/c1
	host ip netns del c1
	netns c1
	host rm -rf /var/lib/cni/networks
	works add n /run/netns/c1
	inside c1 ping -c 1 -W 2 10.9.0.1
	works del n /run/netns/c1
}
