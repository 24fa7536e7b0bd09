# host-local: addresses from ranges, kept in files: what a config says, and the verbs.

load helpers
load host-local

setup() { host_local_setup; }
teardown() { sandbox_end; }

# ---- ADD --------------------------------------------------------------------------------------

@test "ADD gives the first address, the gateway and the routes" {
	ok ADD host-local c1 <<<"$(conf '{"ranges": [[{"subnet": "10.1.2.0/24"}]],
		"routes": [{"dst": "0.0.0.0/0"}, {"dst": "10.9.0.0/16", "gw": "10.1.2.77"}]}')"
	is 'del(.dns | select(. == {}))' '{"cniVersion": "1.0.0",
		"ips": [{"address": "10.1.2.2/24", "gateway": "10.1.2.1"}],
		"routes": [{"dst": "0.0.0.0/0"}, {"dst": "10.9.0.0/16", "gw": "10.1.2.77"}]}'
}

@test "the lease holds container and interface, the marker the address" {
	add container-1 net1
	same lease 636f6e7461696e65722d310d0a6e657431 \
		"$(host od -An -v -tx1 $store/10.1.2.2 | tr -d ' \n')"
	same marker 10.1.2.2 "$(host cat $store/last_reserved_ip.0)"
	same 'bytes of the marker' 8 "$(host stat -c %s $store/last_reserved_ip.0)"
	same 'lock and its kind' 'regular empty file' "$(host stat -c %F $store/lock)"
	same 'all names' '10.1.2.2 last_reserved_ip.0 lock' "$(host ls -A $store | xargs)"
}

@test "a lease is readable by nobody else" {
	only_cnibox "releases before October 2023 made it 0644"
	add c1
	same mode 600 "$(host stat -c %a $store/10.1.2.2)"
}

@test "the result has the form of the config's version" {
	ok ADD host-local c1 <<<"$(conf "$CONF" '{"cniVersion": "0.3.1"}')"
	is '.ips' '[{"version": "4", "address": "10.1.2.2/24", "gateway": "10.1.2.1"}]'
	ok ADD host-local c2 <<<"$(conf "$CONF" '{"cniVersion": "0.2.0"}')"
	is '[.ip4.ip, .ip4.gateway, .ips]' '["10.1.2.3/24", "10.1.2.1", null]'
}

@test "one address from each range set, IPv4 and IPv6" {
	ok ADD host-local c1 <<<"$(conf '{"ranges": [[{"subnet": "10.1.2.0/24"}],
		[{"subnet": "fd00:1::/64", "gateway": "fd00:1::fe"}], [{"subnet": "10.9.0.0/16"}]]}')"
	is '[.ips[] | [.address, .gateway]]' '[["10.1.2.2/24", "10.1.2.1"],
		["fd00:1::1/64", "fd00:1::fe"], ["10.9.0.2/16", "10.9.0.1"]]'
	same leases '10.1.2.2 10.9.0.2 fd00:1::1' "$(leases)"
	same markers '10.1.2.2 fd00:1::1 10.9.0.2' \
		"$(host sh -c "cd $store && for n in 0 1 2; do cat last_reserved_ip.\$n; echo; done" | xargs)"
}

@test "IPv6 names are the canonical text, also where the C library prints dots" {
	ok ADD host-local c1 <<<"$(conf '{"ranges": [[{"subnet": "::/64", "rangeStart": "::1.2.3.4", "gateway": "::1"}]]}')"
	same leases ::102:304 "$(leases)"
	ok ADD host-local c2 <<<"$(conf '{"ranges": [[{"subnet": "2001:0DB8:0:0:1::/80",
		"rangeStart": "2001:db8::1:0:0:AB"}]]}')"
	is '.ips[0].address' '2001:db8::1:0:0:ab/80'
	host test -e $store/2001:db8::1:0:0:ab
}

@test "the last address of an IPv6 subnet is given, broadcast of IPv4 is not" {
	local c
	c=$(conf '{"ranges": [[{"subnet": "10.1.2.4/30"}], [{"subnet": "fd00::4/126"}]]}')
	add c1 eth0 "$c"
	is '[.ips[].address]' '["10.1.2.6/30", "fd00::6/126"]'
	fails 50 'no IP addresses available in range set: 10.1.2.5-10.1.2.6' ADD host-local c2 <<<"$c"
	c=$(conf '{"ranges": [[{"subnet": "fd00::4/126"}]]}' '{"name": "other"}')
	add c1 eth0 "$c"
	add c2 eth0 "$c"
	is '.ips[0].address' 'fd00::7/126'
}

@test "network and broadcast address are given when the range names them" {
	local c
	c=$(conf '{"ranges": [[{"subnet": "10.1.2.0/24", "rangeStart": "10.1.2.0",
		"rangeEnd": "10.1.2.0"}, {"subnet": "10.1.3.0/24", "rangeStart": "10.1.3.255",
		"rangeEnd": "10.1.3.255"}]]}')
	add c1 eth0 "$c"
	is '.ips[0].address' '10.1.2.0/24'
	add c2 eth0 "$c"
	is '.ips[0] | [.address, .gateway]' '["10.1.3.255/24", "10.1.3.1"]'
	fails 50 'range set: 10.1.2.0-10.1.2.0,10.1.3.255-10.1.3.255' ADD host-local c3 <<<"$c"
}

@test "the ranges of a set are used up one after the other, each without its gateway" {
	local c i
	c=$(conf '{"ranges": [[{"subnet": "10.1.2.0/24", "rangeStart": "10.1.2.8", "rangeEnd": "10.1.2.9"},
		{"subnet": "10.1.3.0/24", "rangeStart": "10.1.3.3", "rangeEnd": "10.1.3.5",
		 "gateway": "10.1.3.4"}]]}')
	for i in 1 2 3 4; do
		add c$i eth0 "$c"
	done
	is '.ips[0] | [.address, .gateway]' '["10.1.3.5/24", "10.1.3.4"]'
	same leases '10.1.2.8 10.1.2.9 10.1.3.3 10.1.3.5' "$(leases)"
	fails 50 'failed to allocate for range 0: no IP addresses available' ADD host-local c5 <<<"$c"
}

@test "an address just given back is the last to be given again" {
	local c i
	c=$(conf '{"ranges": [[{"subnet": "10.1.2.0/29"}]]}')
	for i in 2 3 4 5 6 2; do
		add c eth0 "$c"
		is '.ips[0].address' "10.1.2.$i/29"
		del c eth0 "$c"
	done
}

@test "the search begins behind the marker and goes round" {
	lease last_reserved_ip.0 10.1.2.253
	add c1
	is '.ips[0].address' '10.1.2.254/24'
	add c2
	is '.ips[0].address' '10.1.2.2/24'
}

@test "the search goes on in the range of the marker, then in the ranges behind and before it" {
	local c want
	c=$(conf '{"ranges": [[{"subnet": "10.1.1.0/30"}, {"subnet": "10.1.2.0/29"}, {"subnet": "10.1.3.0/30"}]]}')
	lease last_reserved_ip.0 10.1.2.4
	for want in 10.1.2.5 10.1.2.6 10.1.3.2 10.1.1.2 10.1.2.2 10.1.2.3 10.1.2.4; do
		add c-$want eth0 "$c"
		same address $want "$(jq -r '.ips[0].address | split("/")[0]' <<<"$output")"
	done
	fails 50 'no IP addresses available' ADD host-local last <<<"$c"
}

@test "a marker that is torn, foreign or of another range is no obstacle" {
	local bad
	for bad in '' '10.1.2.9\n' rubbish 10.1.2. 192.168.7.9 fd00::9; do
		lease last_reserved_ip.0 "$bad"
		add c1
		is '.ips[0].address' '10.1.2.2/24'
		same marker 10.1.2.2 "$(host cat $store/last_reserved_ip.0)"
		del c1
	done
}

@test "a marker that cannot be written fails nothing" {
	only_cnibox "the Go plugin fails, and leaves the address taken"
	host mkdir -p $store/last_reserved_ip.0
	add c1
	is '.ips[0].address' '10.1.2.2/24'
}

@test "the old form of a range comes before ranges, and means nothing without subnet" {
	ok ADD host-local c1 <<<"$(conf '{"subnet": "10.5.0.0/24", "rangeStart": "10.5.0.9",
		"rangeEnd": "10.5.0.20", "gateway": "10.5.0.254", "ranges": [[{"subnet": "10.6.0.0/24"}]]}')"
	is '[.ips[] | [.address, .gateway]]' '[["10.5.0.9/24", "10.5.0.254"], ["10.6.0.2/24", "10.6.0.1"]]'
	ok ADD host-local c2 <<<"$(conf '{"rangeStart": "10.5.0.9", "gateway": "10.5.0.254",
		"ranges": [[{"subnet": "10.6.0.0/24"}]]}')"
	is '[.ips[].address]' '["10.6.0.3/24"]'
}

@test "runtimeConfig.ipRanges comes before all others" {
	ok ADD host-local c1 <<<"$(conf '{"subnet": "10.5.0.0/24", "ranges": [[{"subnet": "10.6.0.0/24"}]]}' \
		'{"runtimeConfig": {"ipRanges": [[{"subnet": "10.7.0.0/24", "rangeStart": "10.7.0.40"}],
			[{"subnet": "fd00::/64"}]]}}')"
	is '[.ips[].address]' '["10.7.0.40/24", "fd00::2/64", "10.5.0.2/24", "10.6.0.2/24"]'
	ok ADD host-local c2 <<<"$(conf '{}' '{"runtimeConfig": {"ipRanges": [[{"subnet": "10.7.0.0/24"}]]}}')"
	is '[.ips[].address]' '["10.7.0.41/24"]'
}

@test "keys are found in any case, as containerd writes them" {
	ok ADD host-local c1 <<<'{"CNIVersion": "1.0.0", "Name": "net", "type": "ptp", "IPAM":
		{"type": "host-local", "RANGES": [[{"Subnet": "10.1.2.0/24", "RANGESTART": "10.1.2.50"}]]}}'
	is '.ips[0].address' '10.1.2.50/24'
}

@test "dataDir says where, cleaned as a text" {
	ok ADD host-local c1 <<<"$(conf '{"subnet": "10.1.2.0/24", "dataDir": "/var/lib/cni/not-there/../my//dir/."}')"
	host test -e /var/lib/cni/my/dir/net/10.1.2.2
	host test ! -e /var/lib/cni/not-there
	ok DEL host-local c1 <<<"$(conf '{"subnet": "10.1.2.0/24", "dataDir": "/var/lib/cni/my/dir"}')"
	host test ! -e /var/lib/cni/my/dir/net/10.1.2.2
}

@test "networks do not see each other's leases" {
	add c1
	ok ADD host-local c1 <<<"$(conf "$CONF" '{"name": "other"}')"
	is '.ips[0].address' '10.1.2.2/24'
	del c1
	host test -e /var/lib/cni/networks/other/10.1.2.2
}

@test "resolvConf becomes dns" {
	cat >"$T/resolv.conf" <<'END'
# a comment
; another
	nameserver 10.1.1.1 ignored
nameserver 2001:db8::53
domain one.example
domain two.example # really
search a.example b.example
search c.example
options ndots:5
options edns0 rotate
sortlist 1.2.3.4
nameserver
END
	ok ADD host-local c1 <<<"$(conf '{"subnet": "10.1.2.0/24", "resolvConf": "'"$T"'/resolv.conf"}')"
	is .dns '{"nameservers": ["10.1.1.1", "2001:db8::53"], "domain": "two.example",
		"search": ["a.example", "b.example", "c.example"], "options": ["ndots:5", "edns0", "rotate"]}'
}

@test "a resolvConf that cannot be read fails before an address is taken" {
	local c
	c=$(conf '{"subnet": "10.1.2.0/24", "resolvConf": "'"$T"'/missing"}')
	fails 5 'open .*/missing: no such file or directory' ADD host-local c1 <<<"$c"
	head -c 70000 /dev/zero | tr '\0' x >"$T/missing"
	fails 5 'token too long' ADD host-local c1 <<<"$c"
	host test ! -e $store
}

@test "dns of the config is not host-local's business" {
	ok ADD host-local c1 <<<"$(conf '{"subnet": "10.1.2.0/24", "dns": {"domain": "a"}}' '{"dns": {"domain": "b"}}')"
	is '.dns // {}' '{}'
}

# ---- requested addresses ----------------------------------------------------------------------

@test "an address is requested by CNI_ARGS, args.cni.ips or runtimeConfig.ips" {
	CNI_ARGS='IgnoreUnknown=1;K8S_POD_NAME=p;IP=10.1.2.30' ok ADD host-local c1 <<<"$(conf)"
	is '[.ips[].address]' '["10.1.2.30/24"]'
	ok ADD host-local c2 <<<"$(conf "$CONF" '{"args": {"cni": {"ips": ["10.1.2.20"]}}}')"
	is '[.ips[].address]' '["10.1.2.20/24"]'
	ok ADD host-local c3 <<<"$(conf "$CONF" '{"runtimeConfig": {"ips": ["10.1.2.10/8"]}}')"
	is '[.ips[].address]' '["10.1.2.10/24"]'
	same marker 10.1.2.10 "$(host cat $store/last_reserved_ip.0)"
	add c4
	is '[.ips[].address]' '["10.1.2.11/24"]'
}

@test "the three sources add up, doubles count once, sets without a request allocate" {
	CNI_ARGS='IP=10.1.0.30' ok ADD host-local c1 <<<"$(conf '{"ranges": [[{"subnet": "10.1.0.0/24"}],
		[{"subnet": "10.2.0.0/24"}], [{"subnet": "10.3.0.0/24"}], [{"subnet": "fd00::/64"}]]}' \
		'{"args": {"cni": {"ips": ["10.3.0.7", "10.1.0.30"]}},
		  "runtimeConfig": {"ips": ["fd00::abc/64", "10.1.0.30/24"]}}')"
	is '[.ips[].address]' '["10.1.0.30/24", "10.2.0.2/24", "10.3.0.7/24", "fd00::abc/64"]'
}

@test "an empty request is none" {
	CNI_ARGS='IP=' ok ADD host-local c1 <<<"$(conf "$CONF" '{"args": {"cni": {"ips": []}},
		"runtimeConfig": {"ips": null}}')"
	is '[.ips[].address]' '["10.1.2.2/24"]'
}

@test "requests that no set can serve fail, and nothing is taken" {
	local bad
	for bad in 10.1.3.5 10.1.2.0 10.1.2.255 fd00::1; do
		fails 7 "failed to allocate all requested IPs: $bad" ADD host-local c1 \
			<<<"$(conf "$CONF" '{"args": {"cni": {"ips": ["'$bad'"]}}}')"
		same leases '' "$(leases)"
	done
}

@test "of two requests for one set the first is served, and so both fail" {
	only_cnibox "which one is random in Go"
	fails 7 'failed to allocate all requested IPs: 10.1.2.8 10.1.3.8$' ADD host-local c1 \
		<<<"$(conf "$CONF" '{"args": {"cni": {"ips": ["10.1.2.9", "10.1.2.8", "10.1.3.8"]}}}')"
	host test ! -e $store
}

@test "the gateway cannot be requested" {
	fails 7 "failed to allocate for range 0: requested ip 10.1.2.1 is subnet's gateway" \
		ADD host-local c1 <<<"$(conf "$CONF" '{"args": {"cni": {"ips": ["10.1.2.1"]}}}')"
	same leases '' "$(leases)"
}

@test "an address that is taken cannot be requested, not even by its holder" {
	local c id
	c=$(conf "$CONF" '{"args": {"cni": {"ips": ["10.1.2.9"]}}}')
	add c1 eth0 "$c"
	for id in c1 c2; do
		fails 102 'failed to allocate for range 0: requested IP address 10.1.2.9 is not available in range set 10.1.2.1-10.1.2.254' \
			ADD host-local $id <<<"$c"
	done
	same lease c1 "$(host head -n 1 $store/10.1.2.9 | tr -d '\r')"
}

@test "by request an attachment gets a second address, and DEL frees both" {
	add c1
	ok ADD host-local c1 <<<"$(conf "$CONF" '{"args": {"cni": {"ips": ["10.1.2.9"]}}}')"
	same leases '10.1.2.2 10.1.2.9' "$(leases)"
	del c1
	same leases '' "$(leases)"
}

@test "malformed requests are refused" {
	local bad
	for bad in '[""]' '["10.1.2"]' '["10.1.2.300"]' '["10.1.2.3/33"]' '"10.1.2.3"' '[7]'; do
		fails 7 . ADD host-local c1 <<<"$(conf "$CONF" '{"args": {"cni": {"ips": '"$bad"'}}}')"
		fails 7 . ADD host-local c1 <<<"$(conf "$CONF" '{"runtimeConfig": {"ips": '"$bad"'}}')"
	done
	CNI_ARGS='IP=10.1.2.3,10.1.2.4' fails any 'error parsing value of pair' ADD host-local c1 <<<"$(conf)"
	CNI_ARGS='IP=zzz' fails any 'invalid IP address zzz' ADD host-local c1 <<<"$(conf)"
	CNI_ARGS='IP=10.1.2.3;' fails any 'ARGS: invalid pair ""' ADD host-local c1 <<<"$(conf)"
	CNI_ARGS='ip=10.1.2.3' fails any 'ARGS: unknown args \["ip=10.1.2.3"\]' ADD host-local c1 <<<"$(conf)"
	host test ! -e $store
}

@test "null among the requests is refused" {
	only_cnibox "the Go plugin crashes"
	fails 7 null ADD host-local c1 <<<"$(conf "$CONF" '{"runtimeConfig": {"ips": [null]}}')"
}

# ---- mistakes ---------------------------------------------------------------------------------

@test "a bad config is an error of the config, and nothing is made" {
	local n=0 want ipam
	while IFS='|' read -r want ipam; do
		fails 7 "$want" ADD host-local c1 <<<"$(conf "$ipam")"
		n=$((n + 1))
	done <<'END'
no IP ranges specified|{}
no IP ranges specified|{"ranges": []}
no IP ranges specified|{"rangeStart": "10.0.0.1"}
invalid range set 0: .*empty range set|{"ranges": [[]]}
IP <nil> not v4 nor v6|{"ranges": [[{}]]}
invalid CIDR address: 10.0.0.0|{"subnet": "10.0.0.0"}
invalid CIDR address: 10.0.0.0/33|{"subnet": "10.0.0.0/33"}
Network 10.0.0.0/31 too small to allocate from|{"subnet": "10.0.0.0/31"}
Network fd00::/127 too small to allocate from|{"subnet": "fd00::/127"}
Network has host bits set.*network address is 10.0.0.0|{"subnet": "10.0.0.1/24"}
IPNet IP and Mask version mismatch|{"subnet": "::ffff:10.0.0.0/120"}
invalid IP address: 10.0.0|{"subnet": "10.0.0.0/24", "gateway": "10.0.0"}
RangeStart 10.0.1.1 not in network 10.0.0.0/24|{"subnet": "10.0.0.0/24", "rangeStart": "10.0.1.1"}
RangeStart 10.0.0.9 not in network|{"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.9", "rangeEnd": "10.0.0.8"}
RangeEnd 10.0.1.1 not in network 10.0.0.0/24|{"subnet": "10.0.0.0/24", "rangeEnd": "10.0.1.1"}
invalid range set 1: mixed address families|{"ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "10.0.0.0/24"}, {"subnet": "fd00::/64"}]]}
invalid range set 0: subnets 10.0.0.1-10.0.0.254 and 10.0.0.1-10.0.255.254 overlap|{"ranges": [[{"subnet": "10.0.0.0/24"}, {"subnet": "10.0.0.0/16"}]]}
range set 0 overlaps with 1|{"subnet": "10.0.0.0/24", "ranges": [[{"subnet": "10.0.0.0/16"}]]}
.|{"subnet": 7}
.|{"ranges": {}}
.|{"ranges": [{"subnet": "10.0.0.0/24"}]}
.|{"subnet": "10.0.0.0/24", "dataDir": 1}
.|{"subnet": "10.0.0.0/24", "routes": "x"}
.|{"subnet": "10.0.0.0/24", "routes": [{"dst": "x"}]}
END
	same 'cases seen' 24 $n
	fails 7 "IPAM config missing 'ipam' key" ADD host-local c1 \
		<<<'{"cniVersion": "1.0.0", "name": "net", "type": "ptp"}'
	host test ! -e /var/lib/cni/networks
}

@test "a gateway of the other family is a mistake, one outside the subnet is not" {
	only_cnibox "the Go plugin takes any"
	fails 7 'gateway fd00::1 is not of the address family' ADD host-local c1 \
		<<<"$(conf '{"subnet": "10.0.0.0/24", "gateway": "fd00::1"}')"
	ok ADD host-local c1 <<<"$(conf '{"subnet": "10.0.0.0/24", "gateway": "192.168.0.1"}')"
	is '.ips[0] | [.address, .gateway]' '["10.0.0.1/24", "192.168.0.1"]'
}

@test "disjoint slices of one subnet may be in one set or in several" {
	ok ADD host-local c1 <<<"$(conf '{"ranges": [
		[{"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.10", "rangeEnd": "10.0.0.19"},
		 {"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.30", "rangeEnd": "10.0.0.39"}],
		[{"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.20", "rangeEnd": "10.0.0.29"}]]}')"
	is '[.ips[].address]' '["10.0.0.10/24", "10.0.0.20/24"]'
}

@test "before 0.3.0 a result has one address per family" {
	local two='{"ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "10.2.0.0/24"}]]}'
	fails 7 'CNI version 0.2.0 does not support more than 1 address per family' \
		ADD host-local c1 <<<"$(conf "$two" '{"cniVersion": "0.2.0"}')"
	same leases '' "$(leases)"
	ok ADD host-local c1 <<<"$(conf '{"ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd00::/64"}]]}' \
		'{"cniVersion": "0.2.0"}')"
	is '[.ip4.ip, .ip6.ip]' '["10.1.0.2/24", "fd00::2/64"]'
}

# ---- all or nothing ---------------------------------------------------------------------------

@test "a second ADD of an attachment is refused and changes nothing" {
	local before c
	add c1
	before=$(state)
	fails 102 '10.1.2.2 has been allocated to c1, duplicate allocation is not allowed' \
		ADD host-local c1 <<<"$(conf)"
	same store "$before" "$(state)"
	add c1 eth1
	is '.ips[0].address' '10.1.2.3/24'
}

@test "a second ADD is refused also when only the second set knows it" {
	only_cnibox "the Go plugin takes and returns an address of the first set, and with it the old one"
	local before
	add c1
	before=$(state)
	fails 102 'failed to allocate for range 1: 10.1.2.2 has been allocated to c1, duplicate' \
		ADD host-local c1 <<<"$(conf '{"ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "10.1.2.0/24"}]]}')"
	same store "$before" "$(state)"
}

@test "when the second set is exhausted, the address of the first is returned" {
	local c
	c=$(conf '{"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "10.9.0.0/30"}]]}')
	add c1 eth0 "$c"
	fails 50 'failed to allocate for range 1: no IP addresses available in range set: 10.9.0.1-10.9.0.2' \
		ADD host-local c2 <<<"$c"
	same leases '10.1.2.2 10.9.0.2' "$(leases)"
}

@test "a failed ADD returns only what it took itself" {
	only_cnibox "the Go plugin frees all addresses of the attachment"
	local c
	c=$(conf '{"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "10.9.0.0/30"}]]}')
	lease 10.9.0.2 'x\r\neth0'
	add c1
	fails 50 'no IP addresses' ADD host-local c1 <<<"$(jq -c '.args.cni.ips = ["10.1.2.7"]' <<<"$c")"
	same leases '10.1.2.2 10.9.0.2' "$(leases)"
}

@test "a result that cannot be written takes no address" {
	only_cnibox "the Go plugin keeps it"
	local rc=0
	conf '{"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "fd00::/64"}]]}' | host env CNI_COMMAND=ADD \
		CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 CNI_PATH=/x \
		"$CNI_PLUGIN_DIR/host-local" >/dev/full 2>"$T/stderr" || rc=$?
	same 'exit status' 1 $rc
	host test -e $store/lock
	same leases '' "$(leases)"
}

# ---- DEL --------------------------------------------------------------------------------------

@test "DEL frees what the attachment holds and nothing else, and may be repeated" {
	add c1
	add c1 eth1
	add c2
	del c1
	same stdout '' "$output"
	same leases '10.1.2.3 10.1.2.4' "$(leases)"
	del c1
	del nobody
	same leases '10.1.2.3 10.1.2.4' "$(leases)"
}

@test "DEL needs no namespace, and no matter what the ranges are now" {
	add c1
	NETNS= ok DEL host-local c1 <<<"$(conf '{"subnet": "192.168.0.0/24"}')"
	same leases '' "$(leases)"
}

@test "DEL is not held up by a config that ADD would refuse" {
	only_cnibox "the Go plugin validates everything first"
	local ipam
	for ipam in '{}' '{"ranges": [[{"subnet": "10.0.0.1/24"}]]}' '{"ranges": 7}' '{"resolvConf": []}'; do
		add c1
		ok DEL host-local c1 <<<"$(conf "$ipam")"
		same leases '' "$(leases)"
	done
	add c1
	CNI_ARGS='K8S_POD_NAME=x;' ok DEL host-local c1 <<<"$(conf)"
	same leases '' "$(leases)"
}

@test "DEL makes no directory" {
	only_cnibox "the Go plugin makes store and lock"
	del c1
	host test ! -e /var/lib/cni/networks
}

@test "DEL takes leases that name only the container, unless there is an exact one" {
	lease 10.1.2.7 c1
	lease 10.1.2.8 ' c1\n'
	lease 10.1.2.9 'c1\r\neth0'
	lease 10.1.2.10 'c1\neth0'
	del c1
	same leases '10.1.2.10 10.1.2.7 10.1.2.8' "$(leases)"
	del c1
	same leases 10.1.2.10 "$(leases)"
}

@test "DEL of a container named like an address leaves the markers alone" {
	only_cnibox "the Go plugin removes the marker"
	add c1
	del 10.1.2.2
	same marker 10.1.2.2 "$(host cat $store/last_reserved_ip.0)"
}

@test "DEL reports a lease that it cannot remove" {
	only_cnibox "the Go plugin says nothing"
	add c1
	host mount --bind $store $store
	host mount -o remount,bind,ro $store
	fails 5 'cannot release 10.1.2.2' DEL host-local c1 <<<"$(conf)"
	host umount $store
	del c1
	same leases '' "$(leases)"
}

# ---- CHECK ------------------------------------------------------------------------------------

@test "CHECK finds the lease of the attachment" {
	add c1
	ok CHECK host-local c1 <<<"$(conf)"
	same stdout '' "$output"
	fails 101 'Failed to find address added by container c2' CHECK host-local c2 <<<"$(conf)"
	fails 101 'Failed to find address added by container c1' CHECK host-local c1 eth1 <<<"$(conf)"
	del c1
	fails 101 'Failed to find address' CHECK host-local c1 <<<"$(conf)"
	lease 10.1.2.9 c1
	ok CHECK host-local c1 <<<"$(conf)"
}

@test "CHECK compares with prevResult" {
	only_cnibox "the Go plugin does not look at it"
	add c1
	ok CHECK host-local c1 <<<"$(conf "$CONF" '{"prevResult": '"$output"'}')"
	fails 101 'address 10.1.2.9 of prevResult is not allocated to container c1' CHECK host-local c1 \
		<<<"$(conf "$CONF" '{"prevResult": {"cniVersion": "1.0.0", "ips": [{"address": "10.1.2.9/24"}]}}')"
	ok CHECK host-local c1 <<<"$(conf "$CONF" '{"prevResult": {"cniVersion": "1.0.0",
		"ips": [{"address": "10.1.2.2/24"}, {"address": "192.168.0.1/24"}]}}')"
	lease 10.1.2.2 'other\r\neth0'
	fails 101 'Failed to find' CHECK host-local c1 <<<"$(conf)"
}

@test "CHECK is not misled by a marker" {
	only_cnibox "the Go plugin takes it for a lease"
	add c1
	fails 101 'Failed to find' CHECK host-local 10.1.2.2 <<<"$(conf)"
}

# ---- GC, STATUS -------------------------------------------------------------------------------

# gc KEY VALID
gc() { ok GC host-local '' <<<"$(conf '{}' '{"cniVersion": "1.1.0", '"$1"'}')"; }

@test "GC frees what no valid attachment holds, in this network only" {
	only_cnibox "not implemented in Go"
	local id
	for id in c1 c2 c3; do
		add $id
	done
	add c3 eth1
	lease 10.1.2.20 c2
	lease 10.1.2.21 gone
	lease 10.1.2.22 'not for containers'
	lease notes c1
	ok ADD host-local c1 <<<"$(conf "$CONF" '{"name": "other"}')"
	gc '"cni.dev/valid-attachments": [{"containerID": "c2", "ifname": "eth0"},
		{"containerID": "c3", "ifname": "eth1"}]'
	same leases '10.1.2.20 10.1.2.22 10.1.2.3 10.1.2.5 notes' "$(leases)"
	host test -e /var/lib/cni/networks/other/10.1.2.2
}

@test "GC without valid attachments frees all, in every form" {
	only_cnibox "not implemented in Go"
	local valid
	for valid in '"a": 1' '"cni.dev/valid-attachments": null' '"cni.dev/valid-attachments": []'; do
		add c1
		gc "$valid"
		same leases '' "$(leases)"
	done
}

@test "GC makes no directory" {
	only_cnibox "not implemented in Go"
	gc '"a": 1'
	host test ! -e /var/lib/cni/networks
}

@test "STATUS says when a set has no address left" {
	only_cnibox "not implemented in Go"
	local c
	c=$(conf '{"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "10.9.0.0/29"}]]}' '{"cniVersion": "1.1.0"}')
	ok STATUS host-local '' <<<"$c"
	host test ! -e /var/lib/cni/networks
	for id in c1 c2 c3 c4; do
		add $id eth0 "$c"
	done
	ok STATUS host-local '' <<<"$c"
	add c5 eth0 "$c"
	fails 50 'no IP addresses available in range set: 10.9.0.1-10.9.0.6' STATUS host-local '' <<<"$c"
	del c3 eth0 "$c"
	ok STATUS host-local '' <<<"$c"
}

@test "STATUS refuses a bad config, but ranges may come from the runtime later" {
	only_cnibox "not implemented in Go"
	ok STATUS host-local '' <<<"$(conf '{}' '{"cniVersion": "1.1.0"}')"
	fails 7 'host bits' STATUS host-local '' <<<"$(conf '{"subnet": "10.0.0.1/24"}' '{"cniVersion": "1.1.0"}')"
}

@test "STATUS says when the store cannot be written" {
	only_cnibox "not implemented in Go"
	local c
	c=$(conf "$CONF" '{"cniVersion": "1.1.0"}')
	add c1 eth0 "$c"
	host mount --bind $store $store
	host mount -o remount,bind,ro $store
	fails 50 'cannot write to lease store' STATUS host-local '' <<<"$c"
}
