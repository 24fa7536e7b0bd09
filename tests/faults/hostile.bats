# Input that means harm, or comes from a disk that lies. Each call ends, with a result or with one error
# object, and where it fails nothing has changed.

load hostile

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

@test "wrong types everywhere" {
	local p k v
	for p in $PLUGINS; do
		for k in cniVersion name ipam runtimeConfig args prevResult; do
			for v in 1 '"x"' '[1]' '{"a":{"b":[]}}' true -1e400 '[[[]]]'; do
				ends ADD "$p" c1 <<<"$(conf "$p" "\"$k\":$v")"
				case $k$v in name'"x"' | args* | runtimeConfig* | prevResult* | ipam*) ;; *)
					[ "$status" = 1 ] || show "ADD $p should refuse $k: $v" ;;
				esac
				ends DEL "$p" c1 <<<"$(conf "$p" "\"$k\":$v")"
				cni DEL "$p" c1 <<<"$(conf "$p")"
			done
		done
	done
	for k in bridge mtu vlan vlanTrunk isGateway ipMasq dns; do
		for v in '[1]' '{"a":1}' -99999999999 '"../x"' '"a b"' '"sixteen-bytes-xx"'; do
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

@test "interface names that no lease and no JSON could give back" {
	local p verb name
	for p in bridge host-local; do
		for name in $'e\x01' $'e\x7f' $'e\xff' $'\xed\xa0\x80'; do
			for verb in ADD DEL; do NETNS=/run/netns/c1 refused $verb $p c1 "$name" <<<"$(conf $p)"; done
		done
	done
	# What the Go plugin wrote under such a name still goes.
	host sh -c 'mkdir -p /var/lib/cni/networks/net && printf "c1\r\ne\001" >/var/lib/cni/networks/net/10.1.0.7'
	ok GC host-local '' <<<"$(conf host-local '"cni.dev/valid-attachments":[]')"
	nothing_left
}

@test "an IPAM plugin that is none, the caller itself among them" {
	local type verb
	for type in bridge cnitool loopback portmap; do
		for verb in ADD DEL CHECK GC STATUS; do
			refused $verb bridge c1 <<<"{$BR,\"ipam\":{\"type\":\"$type\"},\"prevResult\":$PREV}"
		done
	done
}

@test "lists of a hundred thousand" {
	local ips ranges
	ips=$(seq -f '"10.1.%.0f.1"' 100000 | paste -sd,)
	refused ADD host-local c1 <<<"$(conf host-local "\"runtimeConfig\":{\"ips\":[${ips//./}]}")"
	ips=$(for i in $(seq 0 9); do seq -f "\"10.1.$i.%g\"" 0 255; done | paste -sd,)
	refused ADD host-local c1 <<<"$(conf host-local "\"runtimeConfig\":{\"ips\":[$ips]}")"
	ranges=$(for i in $(seq 0 255); do seq -f "{\"subnet\":\"10.$i.%g.0/24\"}" 0 255; done | paste -sd,)
	refused ADD host-local c1 <<<"$(conf host-local "\"runtimeConfig\":{\"ipRanges\":[[$ranges]]}")"
	{ printf 'search' && printf ' a%.0s' $(seq 500000); } >"$T/resolv"
	refused ADD host-local c1 <<<"{\"cniVersion\":\"1.1.0\",\"name\":\"net\",\"type\":\"x\",\"ipam\":{\"type\":\"host-local\",\"subnet\":\"10.1.0.0/24\",\"resolvConf\":\"$T/resolv\"}}"
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
