# tuning: sysctls and link settings inside the container.

load helpers

setup() {
	need_applet tuning
	sandbox
	netns c1
	host ip link add veth0 type veth peer name eth0 netns c1
	host ip link set veth0 up
	inside c1 ip link set eth0 up address 02:00:00:00:00:01
}
teardown() { sandbox_end; }

GO_DIR=${CNI_GO_DIR:-/usr/lib/cni}
FILE=/run/cni/tuning/c1_eth0.json

# config KEYS: a config with them and a prevResult.
config() {
	jq -n --argjson keys "$1" --arg v "${VERSION:-1.0.0}" '{cniVersion: $v, name: "net1",
		type: "tuning"} + $keys + {prevResult: {cniVersion: $v, interfaces: [
		{name: "veth0", mac: "aa:aa:aa:aa:aa:aa"},
		{name: "eth0", mac: "02:00:00:00:00:01", sandbox: "/run/netns/c1"}],
		ips: [{address: "10.9.0.2/24", interface: 1} + if $v < "1" then {version: "4"} else {} end]}}'
}

# value NAME: a sysctl inside the container, by its path below /proc/sys/net.
value() { inside c1 cat "/proc/sys/net/$1"; }
link() { inside c1 ip -j -d link show "${2:-eth0}" | jq -c ".[0] | $1"; }
allow() {
	host mkdir -p /etc/cni/tuning
	host tee /etc/cni/tuning/allowlist.conf >/dev/null
}

@test "sysctls are written in the container, IFNAME is its interface" {
	local conf='{"sysctl":{"net.core.somaxconn":"500","net/ipv4/conf/IFNAME/arp_filter":"1",
		"net.ipv4.conf.IFNAME.log_martians":"1"}}'
	ok ADD tuning c1 <<<"$(config "$conf")"
	is 'del(.dns)' "$(config "$conf" | jq '.prevResult')"
	same somaxconn 500 "$(value core/somaxconn)"
	same arp_filter 1 "$(value ipv4/conf/eth0/arp_filter)"
	same log_martians 1 "$(value ipv4/conf/eth0/log_martians)"
	same "the node's" 0 "$(host cat /proc/sys/net/ipv4/conf/veth0/arp_filter)"
	conf=${conf//IFNAME/eth0}
	ok CHECK tuning c1 <<<"$(config "$conf")"
	inside c1 sh -c 'echo 400 >/proc/sys/net/core/somaxconn'
	fails 101 'somaxconn.*500.*400' CHECK tuning c1 <<<"$(config "$conf")"
	ok DEL tuning c1 <<<"$(config "$conf")"
	same "sysctls stay" 400 "$(value core/somaxconn)"
}

@test "an interface name with a dot works through IFNAME" {
	only_cnibox "the Go plugin 1.1.1 does not; later ones do"
	inside c1 ip link add link eth0 name eth0.1 type vlan id 1 2>/dev/null ||
		inside c1 ip link add eth0.1 type ifb
	ok ADD tuning c1 eth0.1 <<<"$(config '{"sysctl":{"net.ipv4.conf.IFNAME.arp_filter":"1"}}')"
	same arp_filter 1 "$(value ipv4/conf/eth0.1/arp_filter)"
	fails 100 '.' ADD tuning c1 eth0.1 <<<"$(config '{"sysctl":{"net.ipv4.conf.eth0.1.arp_filter":"1"}}')"
}

@test "no name leaves /proc/sys/net" {
	local name
	for name in kernel.hostname net net. . '' ../proc/sys/net/core/somaxconn ../../etc/passwd \
		/kernel/hostname vm.swappiness IFNAME/x networks.x; do
		fails 7 '.' ADD tuning c1 <<<"$(config "$(jq -n --arg n "$name" '{sysctl: {($n): "1"}}')")"
	done
	# A dot is a separator, so there is no ".." to go up with.
	for name in net/../kernel/hostname net....kernel/hostname /net/../../kernel/hostname \
		net/core/../../../../etc/passwd net..//core....//somaxconn/../x; do
		fails 100 '/proc/sys/net/[a-z]+/' ADD tuning c1 \
			<<<"$(config "$(jq -n --arg n "$name" '{sysctl: {($n): "1"}}')")"
	done
	# Slashes more or less do not matter.
	ok ADD tuning c1 <<<"$(config '{"sysctl":{".net..core//somaxconn":"77"}}')"
	same somaxconn 77 "$(value core/somaxconn)"
}

@test "all names are looked at before the first is written" {
	only_cnibox "the Go plugin writes in random order until one fails"
	local before
	before=$(value core/somaxconn)
	fails 7 'invalid net sysctl key' ADD tuning c1 \
		<<<"$(config '{"sysctl":{"net.core.somaxconn":"123","kernel.hostname":"x"}}')"
	same somaxconn "$before" "$(value core/somaxconn)"
}

@test "what the kernel refuses is an error that names it" {
	fails 100 'net/no/such/thing|net.no.such.thing' ADD tuning c1 \
		<<<"$(config '{"sysctl":{"net.no.such.thing":"1"}}')"
	fails 100 '.' ADD tuning c1 <<<"$(config '{"sysctl":{"net.ipv4.conf":"1"}}')"
	fails 100 '.' ADD tuning c1 <<<"$(config '{"sysctl":{"net.core.somaxconn":"many"}}')"
}

@test "mistakes in the config are refused" {
	fails 7 'prevResult missing' ADD tuning c1 <<<"$(config '{}' | jq 'del(.prevResult)')"
	fails 7 'prevResult missing' CHECK tuning c1 <<<"$(config '{}' | jq 'del(.prevResult)')"
	fails 7 '.' ADD tuning c1 <<<"$(config '{"sysctl":{"net.core.somaxconn":5}}')"
	fails 7 '.' ADD tuning c1 <<<"$(config '{"mac":"nonsense"}')"
	fails 7 '.' ADD tuning c1 <<<"$(config '{"mtu":"1500"}')"
	fails any '.' ADD tuning c1 <<<"$(config '{"mtu":-1}')"
	fails any '.' ADD tuning c1 net9 <<<"$(config '{"mtu":1400}')"
	NETNS=/run/netns/none fails 8 '.' ADD tuning c1 <<<"$(config '{}')"
	CNI_ARGS='A=b' fails 4 'unknown args' ADD tuning c1 <<<"$(config '{}')"
	CNI_ARGS='IgnoreUnknown=1;A=b' ok ADD tuning c1 <<<"$(config '{}')"
}

@test "a sysctl named twice is refused" {
	only_cnibox "the Go plugin 1.1.1 does not look; later ones do"
	local text
	# jq would merge them.
	text=$(config '{"sysctl":{"net.core.somaxconn":"1","net.core.XX":"2"}}')
	fails 7 '[Dd]uplicate' ADD tuning c1 <<<"${text/net.core.XX/net.core.somaxconn}"
	fails 7 '[Dd]uplicate' CHECK tuning c1 <<<"${text/net.core.XX/net.core.somaxconn}"
	text=$(config '{"sysctl":{"net.core.somaxconn":"91","net/core/somaxconn":"91"}}')
	ok ADD tuning c1 <<<"$text"
	same somaxconn 91 "$(value core/somaxconn)"
	# The value of one is no name.
	fails any 'net.x' ADD tuning c1 <<<"$(config '{"sysctl":{"net.x":"net.x","net.y":"net.x"}}')"
}

@test "link settings are made, backed up and restored" {
	local conf='{"mac":"02:00:00:00:00:99","mtu":1400,"promisc":true,"allmulti":true}'
	ok ADD tuning c1 <<<"$(config "$conf")"
	is '.interfaces[1]' '{"name":"eth0","mac":"02:00:00:00:00:99","sandbox":"/run/netns/c1"}'
	is '.interfaces[0].mac' '"aa:aa:aa:aa:aa:aa"'
	same link '["02:00:00:00:00:99",1400,true,true]' \
		"$(link '[.address, .mtu, (.flags | index("PROMISC") != null, index("ALLMULTI") != null)]')"
	jq_is 'del(.network, .netns)' '{"mac":"02:00:00:00:00:01","promisc":false,"mtu":1500,"allmulti":false}' \
		<<<"$(host cat $FILE)"
	same mode 600 "$(host stat -c %a $FILE)"
	ok CHECK tuning c1 <<<"$(config "$conf")"
	ok DEL tuning c1 <<<"$(config "$conf")"
	same link '["02:00:00:00:00:01",1500,false,false]' \
		"$(link '[.address, .mtu, (.flags | index("PROMISC") != null, index("ALLMULTI") != null)]')"
	host test ! -e $FILE
	ok DEL tuning c1 <<<"$(config "$conf")"
}

@test "the backup is, byte for byte but for two keys, what the Go plugin writes" {
	ok ADD tuning c1 <<<"$(config '{"mac":"02:00:00:00:00:99","mtu":1400}')"
	same backup $'{\n "mac": "02:00:00:00:00:01",\n "mtu": 1500\n}' \
		"$(host cat $FILE | sed -z 's/,\n "network": "net1",\n "netns": [0-9]*//')"
}

@test "txQLen" {
	only_cnibox "Debian's Go plugin is too old for it"
	local conf='{"txQLen":77}' before
	before=$(link .txqlen)
	ok ADD tuning c1 <<<"$(config "$conf")"
	same txqlen 77 "$(link .txqlen)"
	ok CHECK tuning c1 <<<"$(config "$conf")"
	inside c1 ip link set eth0 txqueuelen 78
	fails 101 'transmit queue length' CHECK tuning c1 <<<"$(config "$conf")"
	ok DEL tuning c1 <<<"$(config "$conf")"
	same txqlen "$before" "$(link .txqlen)"
	ok ADD tuning c1 <<<"$(config '{"txQLen":0}')"
	same txqlen 0 "$(link '.txqlen // 0')"
	fails 7 txQLen ADD tuning c1 <<<"$(config '{"txQLen":-1}')"
}

@test "promisc false and absent leave it alone, allmulti false clears it" {
	inside c1 ip link set eth0 promisc on allmulticast on
	ok ADD tuning c1 <<<"$(config '{"promisc":false}')"
	same promisc true "$(link '.flags | index("PROMISC") != null')"
	same allmulti true "$(link '.flags | index("ALLMULTI") != null')"
	host test ! -e $FILE
	ok ADD tuning c1 <<<"$(config '{"allmulti":false}')"
	same allmulti false "$(link '.flags | index("ALLMULTI") != null')"
	ok DEL tuning c1 <<<"$(config '{"allmulti":false}')"
	same allmulti true "$(link '.flags | index("ALLMULTI") != null')"
}

@test "CHECK finds what is not as configured" {
	local conf='{"mac":"02:00:00:00:00:99","mtu":1400,"promisc":true,"allmulti":true}'
	ok ADD tuning c1 <<<"$(config "$conf")"
	inside c1 ip link set eth0 promisc off
	fails 101 promisc CHECK tuning c1 <<<"$(config "$conf")"
	inside c1 ip link set eth0 promisc on allmulticast off
	fails 101 'all-multicast|allmulti' CHECK tuning c1 <<<"$(config "$conf")"
	inside c1 ip link set eth0 allmulticast on mtu 1401
	fails 101 'MTU.*1400.*1401' CHECK tuning c1 <<<"$(config "$conf")"
	inside c1 ip link set eth0 mtu 1400 address 02:00:00:00:00:98
	fails 101 '02:00:00:00:00:99.*02:00:00:00:00:98' CHECK tuning c1 <<<"$(config "$conf")"
	inside c1 ip link del eth0
	fails any 'Link not found|eth0' CHECK tuning c1 <<<"$(config "$conf")"
}

@test "the MAC address: args.cni over runtimeConfig over CNI_ARGS over the config" {
	local conf='{"mac":"02:00:00:00:00:11"}'
	ok ADD tuning c1 <<<"$(config "$conf")"
	same mac '"02:00:00:00:00:11"' "$(link .address)"
	CNI_ARGS='IgnoreUnknown=true;MAC=02:00:00:00:00:12;X=y' ok ADD tuning c1 <<<"$(config "$conf")"
	same mac '"02:00:00:00:00:12"' "$(link .address)"
	conf='{"mac":"02:00:00:00:00:11","runtimeConfig":{"mac":"02:00:00:00:00:13"}}'
	CNI_ARGS='MAC=02:00:00:00:00:12' ok ADD tuning c1 <<<"$(config "$conf")"
	same mac '"02:00:00:00:00:13"' "$(link .address)"
	conf='{"runtimeConfig":{"mac":"02:00:00:00:00:13"},"args":{"cni":{"mac":"02:00:00:00:00:14"}}}'
	CNI_ARGS='MAC=02:00:00:00:00:12' ok ADD tuning c1 <<<"$(config "$conf")"
	same mac '"02:00:00:00:00:14"' "$(link .address)"
	is '.interfaces[1].mac' '"02:00:00:00:00:14"'
	conf='{"mac":"02:00:00:00:00:15","runtimeConfig":{"mac":""}}'
	CNI_ARGS='MAC=' ok ADD tuning c1 <<<"$(config "$conf")"
	same mac '"02:00:00:00:00:15"' "$(link .address)"
	conf='{"mac":"02:00:00:00:00:16","args":{"cni":{"mac":""}}}'
	ok ADD tuning c1 <<<"$(config "$conf")"
	same mac '"02:00:00:00:00:15"' "$(link .address)"
}

@test "args.cni overrides key by key" {
	local conf='{"mtu":1400,"allmulti":false,"sysctl":{"net.core.somaxconn":"51",
		"net.ipv4.conf.IFNAME.arp_filter":"1"},"args":{"cni":{"mtu":1300,"allmulti":true,
		"promisc":true,"sysctl":{"net.core.somaxconn":"52","net.ipv4.conf.IFNAME.log_martians":"1"}}}}'
	ok ADD tuning c1 <<<"$(config "$conf")"
	same link '[1300,true,true]' \
		"$(link '[.mtu, (.flags | index("PROMISC") != null, index("ALLMULTI") != null)]')"
	same sysctls '52 1 1' "$(echo "$(value core/somaxconn)" "$(value ipv4/conf/eth0/arp_filter)" \
		"$(value ipv4/conf/eth0/log_martians)")"
	ok CHECK tuning c1 <<<"$(config "${conf//IFNAME/eth0}")"
}

@test "args.cni.sysctl alone is enough" {
	only_cnibox "the Go plugin crashes"
	local conf='{"args":{"cni":{"sysctl":{"net.core.somaxconn":"53"}}}}'
	ok ADD tuning c1 <<<"$(config "$conf")"
	same somaxconn 53 "$(value core/somaxconn)"
	ok CHECK tuning c1 <<<"$(config "$conf")"
	ok DEL tuning c1 <<<"$(config "$conf")"
}

@test "a result in canonical form: MAC address, and MTU since 1.1.0" {
	only_cnibox "the Go plugin copies the text and knows no MTU"
	VERSION=1.1.0
	ok ADD tuning c1 <<<"$(config '{"mac":"02-00-00-00-00-AB","mtu":1400}')"
	is '.interfaces[1]' \
		'{"name":"eth0","mac":"02:00:00:00:00:ab","mtu":1400,"sandbox":"/run/netns/c1"}'
	is '.interfaces[0]' '{"name":"veth0","mac":"aa:aa:aa:aa:aa:aa"}'
	# A link of the same name outside the container is another one.
	ok ADD tuning c1 <<<"$(config '{"mac":"02:00:00:00:00:ac"}' |
		jq '.prevResult.interfaces[0].name = "eth0"')"
	is '[.interfaces[].mac]' '["aa:aa:aa:aa:aa:aa","02:00:00:00:00:ac"]'
	VERSION=0.3.1
	ok ADD tuning c1 <<<"$(config '{"mac":"02:00:00:00:00:ad","mtu":1400}')"
	is '[.cniVersion, .interfaces[1], .ips[0].version]' \
		'["0.3.1",{"name":"eth0","mac":"02:00:00:00:00:ad","sandbox":"/run/netns/c1"},"4"]'
}

@test "the allowlist: unanchored expressions on the name as written" {
	only_cnibox "the Go plugin 1.1.1 has no allowlist; later ones do"
	allow <<-'END'
		  ^net\.core\.soma\w+$

		conf\.IFNAME\.(?:arp|rp)_filter
	END
	ok ADD tuning c1 <<<"$(config '{"sysctl":{"net.core.somaxconn":"61","net.ipv4.conf.IFNAME.arp_filter":"1"}}')"
	fails 7 'net.ipv4.conf.eth0.arp_filter' ADD tuning c1 \
		<<<"$(config '{"sysctl":{"net.ipv4.conf.eth0.arp_filter":"0"}}')"
	fails 7 'net/core/somaxconn' ADD tuning c1 <<<"$(config '{"sysctl":{"net/core/somaxconn":"62"}}')"
	fails 7 'forwarding' ADD tuning c1 <<<"$(config '{"sysctl":{"net.core.somaxconn":"62"},
		"args":{"cni":{"sysctl":{"net.ipv4.conf.all.forwarding":"1"}}}}')"
	same somaxconn 61 "$(value core/somaxconn)"
	# Only ADD asks.
	ok CHECK tuning c1 <<<"$(config '{"sysctl":{"net/core/somaxconn":"61"}}')"
	ok ADD tuning c1 <<<"$(config '{"mtu":1400}')"
}

@test "an empty allowlist allows nothing, a broken one is an error" {
	only_cnibox "the Go plugin 1.1.1 has no allowlist; later ones do"
	allow </dev/null
	fails 7 'net.core.somaxconn' ADD tuning c1 <<<"$(config '{"sysctl":{"net.core.somaxconn":"63"}}')"
	allow <<<'net.core.(somax'
	fails 7 '.' ADD tuning c1 <<<"$(config '{"sysctl":{"net.core.somaxconn":"63"}}')"
	allow <<-'END'
		net.core
		net.core.(somax
	END
	ok ADD tuning c1 <<<"$(config '{"sysctl":{"net.core.somaxconn":"64"}}')"
}

@test "a hopeless expression in the allowlist ends" {
	only_cnibox "Go's engine knows no such expressions"
	allow <<<'^(([a-z.])+.)+[0-9]([a-z])+$'
	CALL_TIMEOUT=10 fails 7 'aaaaaaa' ADD tuning c1 \
		<<<"$(config '{"sysctl":{"net.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa":"1"}}')"
}

@test "a failing ADD puts everything back" {
	only_cnibox "the Go plugin leaves what it did until then"
	local before
	before=$(link '[.address, .mtu, .flags]')
	inside c1 sh -c 'echo 71 >/proc/sys/net/core/somaxconn'
	fails 100 'MAC address.*eth0' ADD tuning c1 <<<"$(config '{"sysctl":{"net.core.somaxconn":"72",
		"net.ipv4.conf.IFNAME.arp_filter":"1"},"mac":"01:00:00:00:00:01","mtu":1400,"promisc":true}')"
	same somaxconn 71 "$(value core/somaxconn)"
	same arp_filter 0 "$(value ipv4/conf/eth0/arp_filter)"
	same link "$before" "$(link '[.address, .mtu, .flags]')"
	host test ! -e $FILE
	fails 100 'net.no.such' ADD tuning c1 \
		<<<"$(config '{"sysctl":{"net.core.somaxconn":"72","net.no.such":"1"}}')"
	same somaxconn 71 "$(value core/somaxconn)"
}

@test "a failing ADD puts an earlier backup back" {
	only_cnibox "the Go plugin overwrites it"
	local kept
	ok ADD tuning c1 <<<"$(config '{"mtu":1400}')"
	kept=$(host cat $FILE)
	fails 100 'MAC address' ADD tuning c1 <<<"$(config '{"mtu":1300,"mac":"01:00:00:00:00:01"}')"
	same backup "$kept" "$(host cat $FILE)"
	same mtu 1400 "$(link .mtu)"
}

@test "ADD twice, and two of them in a list: DEL goes back to the first state" {
	only_cnibox "the Go plugin's second ADD overwrites the backup"
	ok ADD tuning c1 <<<"$(config '{"mtu":1400}')"
	ok ADD tuning c1 <<<"$(config '{"mtu":1300,"mac":"02:00:00:00:00:99"}')"
	ok DEL tuning c1 <<<"$(config '{"mtu":1300}')"
	same link '["02:00:00:00:00:01",1500]' "$(link '[.address, .mtu]')"
	ok DEL tuning c1 <<<"$(config '{"mtu":1400}')"
	same link '["02:00:00:00:00:01",1500]' "$(link '[.address, .mtu]')"
}

@test "a backup of another network is not kept" {
	only_cnibox "the Go plugin does not know whose it is"
	ok ADD tuning c1 <<<"$(config '{"mtu":1400}' | jq '.name = "old"')"
	ok ADD tuning c1 <<<"$(config '{"mtu":1300}')"
	jq_is '[.mtu, .network]' '[1400,"net1"]' <<<"$(host cat $FILE)"
}

@test "DEL never fails for what is gone, and leaves no file" {
	local how
	for how in netns link empty corrupt none; do
		ok ADD tuning c1 <<<"$(config '{"mtu":1400}')"
		case $how in
		netns) NETNS=/run/netns/gone ok DEL tuning c1 <<<"$(config '{}')" ;;
		empty) NETNS='' ok DEL tuning c1 <<<"$(config '{}')" ;;
		none) NETNS=/etc/passwd ok DEL tuning c1 <<<"$(config '{}')" ;;
		corrupt)
			host sh -c "echo '{\"mtu\":' >$FILE"
			ok DEL tuning c1 <<<"$(config '{}')"
			;;
		link)
			inside c1 ip link set eth0 name away
			ok DEL tuning c1 <<<"$(config '{}')"
			inside c1 ip link set away name eth0
			;;
		esac
		! is_cnibox || host test ! -e $FILE
		host rm -f $FILE
		inside c1 ip link set eth0 mtu 1500
	done
}

@test "DEL restores whatever the config says now" {
	only_cnibox "the Go plugin fails"
	ok ADD tuning c1 <<<"$(config '{"mtu":1400}')"
	CNI_ARGS='what=ever;' ok DEL tuning c1 <<<"$(config '{"mtu":"x","sysctl":7,"mac":"no"}')"
	same mtu 1500 "$(link .mtu)"
	host test ! -e $FILE
}

@test "a backup that cannot be restored is kept, and DEL succeeds" {
	ok ADD tuning c1 <<<"$(config '{"mtu":1400,"mac":"02:00:00:00:00:99"}')"
	host sh -c "printf '{\n \"mac\": \"01:00:00:00:00:01\",\n \"mtu\": 1450\n}' >$FILE"
	ok DEL tuning c1 <<<"$(config '{"mtu":1400}')"
	same "what could be" 1450 "$(link .mtu)"
	host test -e $FILE
	! is_cnibox || [[ $stderr == *'MAC address of "eth0"'* ]]
}

@test "dataDir" {
	ok ADD tuning c1 <<<"$(config '{"mtu":1400,"dataDir":"/run/elsewhere/deep"}')"
	host test -e /run/elsewhere/deep/c1_eth0.json
	host test ! -e $FILE
	ok DEL tuning c1 <<<"$(config '{"mtu":1400,"dataDir":"/run/elsewhere/deep"}')"
	host test ! -e /run/elsewhere/deep/c1_eth0.json
	same mtu 1500 "$(link .mtu)"
}

@test "CHECK compares values as the kernel prints them, and skips what cannot be read" {
	only_cnibox "the Go plugin compares bytes, and a counter for promisc"
	local conf='{"sysctl":{"net.ipv4.ip_local_port_range":"20000 30000","net.ipv4.route.flush":"1"},
		"mac":"02-00-00-00-00-AB"}'
	ok ADD tuning c1 <<<"$(config "$conf")"
	ok CHECK tuning c1 <<<"$(config "$conf")"
	fails 101 20000 CHECK tuning c1 <<<"$(config '{"sysctl":{"net.ipv4.ip_local_port_range":"2000030000"}}')"
	inside c1 ip link set eth0 promisc on
	ok CHECK tuning c1 <<<"$(config "$conf")"
}

@test "GC removes backups of this network whose attachment is not valid, and no others" {
	only_cnibox "the Go plugin has no GC"
	local conf='{"cniVersion":"1.1.0","name":"net1","type":"tuning"}' list
	ok ADD tuning c1 <<<"$(config '{"mtu":1400}')"
	for id in c2 a_b; do
		host sh -c "sed 's/1500/1501/' $FILE >/run/cni/tuning/${id}_eth0.json"
	done
	host sh -c "sed 's/net1/net2/' $FILE >/run/cni/tuning/c3_eth0.json"
	host sh -c "printf '{\n \"mtu\": 1500\n}' >/run/cni/tuning/c4_eth0.json"
	host sh -c "echo torn >/run/cni/tuning/c5_eth0.json; echo >/run/cni/tuning/other"
	ok GC tuning - <<<"$(jq '.["cni.dev/valid-attachments"] = [{"containerID":"c1","ifname":"eth0"},
		{"containerID":"a_b","ifname":"eth0"}]' <<<"$conf")"
	list=$(host ls /run/cni/tuning)
	same files 'a_b_eth0.json c1_eth0.json c3_eth0.json c4_eth0.json c5_eth0.json other' "$(echo $list)"
	ok GC tuning - <<<"$conf"
	list=$(host ls /run/cni/tuning)
	same files 'c3_eth0.json c4_eth0.json c5_eth0.json other' "$(echo $list)"
	ok GC tuning - <<<"$(jq '.dataDir = "/run/none"' <<<"$conf")"
}

@test "STATUS says whether the config is allowed" {
	only_cnibox "the Go plugin has no STATUS"
	local conf='{"cniVersion":"1.1.0","name":"net1","type":"tuning","sysctl":{"net.core.somaxconn":"5"}}'
	ok STATUS tuning - <<<"$conf"
	allow <<<'^net.ipv4'
	fails 7 allowlist STATUS tuning - <<<"$conf"
}

@test "a backup of the Go plugin is restored by us, and ours by it" {
	only_cnibox "this is about changing over"
	[ -x "$GO_DIR/tuning" ] || skip "no Go plugins in $GO_DIR"
	local conf='{"mac":"02:00:00:00:00:99","mtu":1400,"promisc":true,"allmulti":true}' ours theirs
	local state='[.address, .mtu, .flags]' before
	before=$(link "$state")
	ok ADD "$GO_DIR/tuning" c1 <<<"$(config "$conf")"
	theirs=$(host cat $FILE)
	ok CHECK tuning c1 <<<"$(config "$conf")"
	ok DEL tuning c1 <<<"$(config "$conf")"
	same link "$before" "$(link "$state")"
	ok ADD tuning c1 <<<"$(config "$conf")"
	ours=$(host cat $FILE)
	same "backup" "$theirs" "$(sed -z 's/,\n "network": "net1",\n "netns": [0-9]*//' <<<"$ours")"
	ok CHECK "$GO_DIR/tuning" c1 <<<"$(config "$conf")"
	ok DEL "$GO_DIR/tuning" c1 <<<"$(config "$conf")"
	same link "$before" "$(link "$state")"
	host test ! -e $FILE
}
