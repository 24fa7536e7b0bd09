# Results and prevResult in every version.

load protocol

# ---- results in every version -----------------------------------------------------------------

@test "host-local: the bytes of a result in each family of versions" {
	local v n=1 body
	need_applet host-local
	for v in $(supported host-local); do
		n=$((n + 1))
		cni ADD host-local c$n <<<"{\"cniVersion\":\"$v\",\"name\":\"n\",\"type\":\"bridge\",
			\"ipam\":{\"type\":\"host-local\",\"subnet\":\"10.1.0.0/24\",\"routes\":[{\"dst\":\"0.0.0.0/0\"}]}}"
		same "status for $v" 0 "$status"
		case $v in
		0.1.0 | 0.2.0) body='    "ip4": {
        "ip": "10.1.0.'$n'/24",
        "gateway": "10.1.0.1",
        "routes": [
            {
                "dst": "0.0.0.0/0"
            }
        ]
    },
    "dns": {}' ;;
		0.*) body='    "ips": [
        {
            "version": "4",
            "address": "10.1.0.'$n'/24",
            "gateway": "10.1.0.1"
        }
    ],
    "routes": [
        {
            "dst": "0.0.0.0/0"
        }
    ],
    "dns": {}' ;;
		*) body='    "ips": [
        {
            "address": "10.1.0.'$n'/24",
            "gateway": "10.1.0.1"
        }
    ],
    "routes": [
        {
            "dst": "0.0.0.0/0"
        }
    ]' ;;
		esac
		# Go before 1.5 always wrote "dns", and its keys in the order of the spec.
		if is_cnibox; then
			printf '{\n    "cniVersion": "%s",\n%s\n}' "$v" "$body" | cmp - "$T/stdout" || show "bytes for $v"
		else
			jq_is 'del(.dns)' "$(jq 'del(.dns)' <<<"{\"cniVersion\":\"$v\",$body}")" <"$T/stdout"
		fi
	done
}

@test "host-local: a result with IPv6 in each family of versions" {
	local v n=0
	for v in $(supported host-local); do
		n=$((n + 1))
		ok ADD host-local c$n <<<"{\"cniVersion\":\"$v\",\"name\":\"n\",\"type\":\"bridge\",
			\"ipam\":{\"type\":\"host-local\",\"ranges\":[[{\"subnet\":\"FD00:0:0:1::/64\"}],[{\"subnet\":\"10.1.0.0/24\"}]]}}"
		case $v in
		0.1.0 | 0.2.0)
			is '.ip6.ip' "fd00:0:0:1::$((n + 1))/64"
			is '.ip4.ip' "10.1.0.$((n + 1))/24"
			is 'has("ips")' false
			;;
		0.*)
			is '[.ips[].version]' '["6","4"]'
			is '.ips[0].address' "fd00:0:0:1::$((n + 1))/64"
			is 'has("ip4") or has("ip6")' false
			;;
		*)
			is '[.ips[] | has("version")]' '[false,false]'
			is '.ips[0].gateway' 'fd00:0:0:1::1'
			;;
		esac
	done
}

@test "loopback: the true shape in each family of versions" {
	local v
	only_cnibox "the Go plugin prints the newest shape under every label"
	for v in $ALL; do
		netns "v$v"
		ok ADD loopback "v$v" lo <<<"{\"cniVersion\":\"$v\",\"name\":\"n\",\"type\":\"loopback\"}"
		is .cniVersion "$v"
		case $v in
		0.1.0 | 0.2.0)
			is 'del(.cniVersion)' '{"ip4":{"ip":"127.0.0.1/8"},"ip6":{"ip":"::1/128"},"dns":{}}'
			;;
		0.*)
			is '[.ips[].version] | sort' '["4","6"]'
			is .dns '{}'
			is '[.interfaces[].name]' '["lo"]'
			is '.interfaces[0].sandbox' "/run/netns/v$v"
			;;
		*)
			is keys_unsorted '["cniVersion","interfaces","ips"]'
			is '[.ips[] | has("version")] | any' false
			;;
		esac
	done
}

@test "bridge: the true shape in each family of versions" {
	local v n=0
	need_applet bridge
	for v in $(supported bridge); do
		n=$((n + 1))
		netns "v$v"
		ok ADD bridge "v$v" <<<"{\"cniVersion\":\"$v\",\"name\":\"n\",\"type\":\"bridge\",\"bridge\":\"br0\",
			\"ipam\":{\"type\":\"host-local\",\"subnet\":\"10.1.0.0/24\"}}"
		is .cniVersion "$v"
		case $v in
		0.1.0 | 0.2.0)
			is '.ip4.ip' "10.1.0.$((n + 1))/24"
			is 'has("interfaces") or has("ips")' false
			;;
		*)
			is '[.interfaces | length, .[0].name, .[2].name]' '[3,"br0","eth0"]'
			is '.interfaces[2].sandbox' "/run/netns/v$v"
			is '.interfaces[0] | has("sandbox")' false
			is '.ips[0].interface' 2
			is '.ips[0].address' "10.1.0.$((n + 1))/24"
			is '.ips[0].version // "none"' "$(case $v in 0.*) echo '"4"' ;; *) echo '"none"' ;; esac)"
			;;
		esac
		# The same sandbox and version make a CHECK and a DEL that fit.
		case $v in
		0.1* | 0.2* | 0.3*) ;;
		*) ok CHECK bridge "v$v" <<<"{\"cniVersion\":\"$v\",\"name\":\"n\",\"type\":\"bridge\",\"bridge\":\"br0\",
			\"ipam\":{\"type\":\"host-local\",\"subnet\":\"10.1.0.0/24\"},\"prevResult\":$output}" ;;
		esac
		ok DEL bridge "v$v" <<<"{\"cniVersion\":\"$v\",\"name\":\"n\",\"type\":\"bridge\",\"bridge\":\"br0\",
			\"ipam\":{\"type\":\"host-local\",\"subnet\":\"10.1.0.0/24\"}}"
		same "stdout of DEL" '' "$output"
	done
	nothing_left br0
}

@test "the newest results have their keys sorted at every level" {
	only_cnibox "the Go plugins before 1.5 keep the order of the spec"
	netns c1
	ok ADD bridge c1 <<<'{"cniVersion":"1.1.0","name":"n","type":"bridge","bridge":"br0",
		"dns":{"search":["a"],"nameservers":["10.0.0.1"],"domain":"d","options":["o"]},
		"ipam":{"type":"host-local","subnet":"10.1.0.0/24","routes":[{"dst":"10.2.0.0/16","gw":"10.1.0.9","priority":5}]}}'
	jq -S . <<<"$output" >"$T/sorted"
	jq . <<<"$output" | cmp "$T/sorted" - || show "order"
}

# ---- prevResult -------------------------------------------------------------------------------

PREV='"interfaces":[{"name":"eth0","mac":"02:00:00:00:00:01","sandbox":"/run/netns/c1"}],
	"ips":[{"interface":0,"address":"10.1.0.2/24"}],"routes":[{"dst":"0.0.0.0/0","gw":"10.1.0.1"}]'

@test "prevResult goes through a chained plugin in every version" {
	local v prev
	need_applet tuning
	netns c1
	for v in $(supported tuning); do
		case $v in
		0.1.0 | 0.2.0) prev='{"ip4":{"ip":"10.1.0.2/24","gateway":"10.1.0.1","routes":[{"dst":"0.0.0.0/0"}]},"dns":{"domain":"d"}}' ;;
		0.*) prev=$(jq -c '.ips[0].version = "4" | .dns.domain = "d"' <<<"{$PREV}") ;;
		*) prev=$(jq -c '.dns.domain = "d"' <<<"{$PREV}") ;;
		esac
		ok ADD tuning c1 lo <<<"{\"cniVersion\":\"$v\",\"name\":\"n\",\"type\":\"tuning\",\"prevResult\":$prev}"
		is . "$(jq -c --arg v "$v" '.cniVersion = $v' <<<"$prev")"
	done
}

@test "prevResult of the wrong shape or type is refused" {
	need_applet tuning
	netns c1
	call() { fails 6 "$1" ADD tuning c1 lo <<<"{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"type\":\"tuning\",\"prevResult\":$2}"; }
	call 'could not parse prevResult: .*result type supports \[1.0.0.*\] but unmarshalled CNIVersion is "0.4.0"' "{\"cniVersion\":\"0.4.0\",$PREV}"
	call 'could not parse prevResult' "{\"cniVersion\":\"\",$PREV}"
	call 'could not parse prevResult' '{"ips":[{"address":"10.1.0.2"}]}'
	call 'could not parse prevResult' '{"ips":[{"address":"10.1.0.02/24"}]}'
	call 'could not parse prevResult' '{"ips":{}}'
	cni ADD tuning c1 lo <<<'{"cniVersion":"1.0.0","name":"n","type":"tuning","prevResult":[]}'
	failed any ''
}

@test "prevResult with null elements does not crash" {
	local v what
	need_applet tuning
	only_cnibox "the Go plugins crash"
	netns c1
	for v in 0.3.1 1.0.0; do
		for what in '"ips":[null]' '"interfaces":[null]' '"routes":[null]'; do
			fails any 'prevResult' ADD tuning c1 lo \
				<<<"{\"cniVersion\":\"$v\",\"name\":\"n\",\"type\":\"tuning\",\"prevResult\":{$what}}"
		done
	done
}

@test "a result without an address has no form in 0.2.0" {
	need_applet bridge
	netns c1
	fails any 'cannot convert: no valid IP addresses' ADD bridge c1 \
		<<<'{"cniVersion":"0.2.0","name":"n","type":"bridge","bridge":"br0"}'
	is_cnibox || return 0
	inside_is c1 '[.[].ifname]' '["lo"]' ip -j link
	nothing_left br0
}
