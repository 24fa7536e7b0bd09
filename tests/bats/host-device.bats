# host-device: a device of the node for one container. Going there, coming back as it was, what fails
# and what is left then, CHECK, GC. Devices by PCI address are in host-device-pci.bats.

load host-device

# ---- there and back ---------------------------------------------------------------------------

@test "the device is the container's, under its name, and up" {
	add c1 "$(conf)"
	is '[.interfaces[] | [.name, .sandbox, .mac]]' '[["eth0","/run/netns/c1","02:00:00:00:00:d0"]]'
	is '.ips // []' '[]'
	link_in '[.address, .mtu, (.flags | contains(["UP"])), .linkinfo.info_kind]' '["02:00:00:00:00:d0",1400,true,"veth"]'
	link_in .ifalias dev0
	same "on the node" "" "$(links host)"
}

@test "DEL: under its old name on the node, nothing else on it, and only in one place" {
	add c1 "$(conf)"
	del c1 "$(conf)"
	same "in the container" "" "$(links c1)"
	same "on the node" dev0 "$(links host)"
	link '[.address, .mtu, (.flags | contains(["UP"])), .altnames // []]' '["02:00:00:00:00:d0",1400,false,[]]'
	nothing_left dev0
	is_cnibox || return 0 # 1.1.1 leaves its alias there
	link '.ifalias // ""' ""
}

@test "addresses and routes from IPAM, and packets through it" {
	local c
	c=$(l3 '{"ipam":{"routes":[{"dst":"10.9.0.0/16","gw":"10.1.0.1"}]}}')
	inside out ip addr add 10.1.0.1/24 dev eth0
	add c1 "$c"
	is '[.ips[] | [.address, .interface]]' '[["10.1.0.2/24",0]]'
	is '.routes' '[{"dst":"10.9.0.0/16","gw":"10.1.0.1"}]'
	serve out 80
	same answer "out 10.1.0.2" "$(ask c1 tcp 10.1.0.1 80)"
	inside c1 ip route | grep -q '^10.9.0.0/16 via 10.1.0.1 dev eth0'
	check "$c" c1
	del c1 "$c"
	same leases "" "$(leases)"
	nothing_left dev0
}

@test "IPv6 addresses" {
	local c
	c=$(conf '{"ipam":{"type":"host-local","subnet":"fd00:1::/64"}}')
	inside out ip addr add fd00:1::1/64 dev eth0 nodad
	add c1 "$c"
	is '.ips[0].address' fd00:1::2/64
	wait_for 10 inside c1 ping -6 -c 1 -W 1 fd00:1::1
	del c1 "$c"
	nothing_left dev0
}

@test "again and again: the second ADD finds it as the first did" {
	for _ in 1 2 3; do
		add c1 "$(l3)"
		del c1 "$(l3)"
	done
	link '[.ifname, .altnames // []]' '["dev0",[]]'
}

@test "what was up is up again, with its flags and its alias" {
	only_cnibox "the Go plugin leaves it down, and its alias is lost"
	host ip link set dev0 up promisc on alias 'uplink to rack 7'
	add c1 "$(conf)"
	link_in .ifalias dev0
	del c1 "$(conf)"
	link '[(.flags | contains(["UP", "PROMISC"])), .ifalias, .mtu]' '[true,"uplink to rack 7",1400]'
}

@test "an alias too long to be remembered is lost, and nothing else" {
	only_cnibox "the Go plugin loses every alias"
	host ip link set dev0 up alias "$(printf 'x%.0s' {1..200})"
	add c1 "$(conf)"
	del c1 "$(conf)"
	link '[(.flags | contains(["UP"])), .ifalias // "", .mtu]' '[true,"",1400]'
}

@test "what the container changed is put right: MTU, MAC address, state, name" {
	only_cnibox "the Go plugin brings the changes back, or fails"
	host ip link set dev0 up
	add c1 "$(conf)"
	inside c1 ip link set eth0 down
	inside c1 ip link set eth0 name moved0
	inside c1 ip link set moved0 address 02:00:00:00:00:99 mtu 1300
	inside c1 ip link set moved0 up promisc on
	del c1 "$(conf)"
	same "in the container" "" "$(links c1)"
	link '[.address, .mtu, (.flags | contains(["UP"])), (.flags | contains(["PROMISC"]))]' \
		'["02:00:00:00:00:d0",1400,true,false]'
}

@test "renamed inside, and another link has its name: the right one comes back" {
	only_cnibox "the Go plugin goes by the name"
	add c1 "$(conf)"
	inside c1 ip link set eth0 down
	inside c1 ip link set eth0 name moved0
	inside c1 ip link add eth0 type bridge
	del c1 "$(conf)"
	same "in the container" eth0 "$(links c1)"
	same "on the node" dev0 "$(links host)"
}

@test "a name of the node that is taken in the container, and the other way round" {
	only_cnibox "1.1.1 moves first and renames then"
	host ip link add eth0 type bridge
	inside c1 ip link add dev0 type bridge
	add c1 "$(conf)"
	link_in .linkinfo.info_kind veth
	del c1 "$(conf)"
	link .linkinfo.info_kind veth
	same "on the node" "dev0 eth0" "$(links host)"
	same "in the container" dev0 "$(links c1)"
}

@test "two devices for one container, by one network" {
	only_cnibox "the Go plugin has no mark to tell them apart by"
	host ip link add dev1 type veth peer name eth1 netns out
	add c1 "$(conf)"
	add c1 "$(conf '{"device":"dev1"}')" eth1
	inside c1 sh -c 'ip link set eth0 down && ip link set eth1 down && ip link set eth0 name x &&
		ip link set eth1 name eth0 && ip link set x name eth1'
	del c1 "$(conf)"
	same "on the node" dev0 "$(links host)"
	link .address 02:00:00:00:00:d0
	del c1 "$(conf '{"device":"dev1"}')" eth1
	same "on the node" "dev0 dev1" "$(links host)"
}

# ---- which device -----------------------------------------------------------------------------

@test "by MAC address, in any spelling" {
	local mac
	for mac in 02:00:00:00:00:D0 02-00-00-00-00-d0 0200.0000.00d0; do
		add c1 "$(conf "{\"hwaddr\":\"$mac\"}")"
		del c1 "$(conf "{\"hwaddr\":\"$mac\"}")"
	done
	link .address 02:00:00:00:00:d0
}

@test "by its path in /sys/devices: the first of its links" {
	local c='{"kernelpath":"/sys/devices/virtual"}'
	add c1 "$(conf "$c")"
	link_in .address 02:00:00:00:00:d0
	check "$(conf "$c")" c1
	del c1 "$(conf "$c")"
	link .address 02:00:00:00:00:d0
	fails 7 'failed to find host device' ADD host-device c1 <<<"$(conf '{"kernelpath":"/sys/devices/virtual/nothing"}')"
}

@test "by an alternative name" {
	only_cnibox "1.1.1 takes none that is longer than a name"
	host ip link property add dev dev0 altname the-device-of-the-second-container || skip "no altnames"
	add c1 "$(conf '{"device":"the-device-of-the-second-container"}')"
	link_in .ifalias dev0
	del c1 "$(conf '{"device":"the-device-of-the-second-container"}')"
	link .altnames '["the-device-of-the-second-container"]'
}

@test "the name counts more than the others" {
	host ip link add dev1 type veth peer name eth1 netns out
	add c1 "$(conf '{"device":"dev0","hwaddr":"02:00:00:00:00:ff","kernelpath":"/sys/devices/virtual"}')"
	same "on the node" dev1 "$(links host)"
	link_in .address 02:00:00:00:00:d0
}

@test "keys in any case" {
	add c1 '{"cniVersion":"1.0.0","name":"net1","type":"host-device","DEVICE":"dev0"}'
	link_in .address 02:00:00:00:00:d0
}

# ---- what is refused --------------------------------------------------------------------------

@test "no key that says which device" {
	fails 7 'specify either' ADD host-device c1 <<<'{"cniVersion":"1.0.0","name":"n","type":"host-device"}'
	fails 7 'specify either' ADD host-device c1 <<<'{"cniVersion":"1.0.0","name":"n","type":"host-device","device":""}'
}

@test "devices that do not exist, and what is no device" {
	fails 7 'failed to find host device' ADD host-device c1 <<<"$(conf '{"device":"dev7"}')"
	fails 7 'failed to find host device' ADD host-device c1 <<<"$(conf '{"hwaddr":"02:00:00:00:00:77"}')"
	fails 7 'failed to find host device' ADD host-device c1 <<<"$(conf '{"hwaddr":"nonsense"}')"
	fails 7 'failed to find host device' ADD host-device c1 <<<"$(conf '{"kernelpath":"/etc"}')"
	fails any '' ADD host-device c1 <<<"$(conf '{"device":"lo"}')"
	same "on the node" dev0 "$(links host)"
	link '.altnames // []' '[]'
}

@test "a path that leaves /sys/devices by .." {
	only_cnibox "the Go plugin looks at the beginning only"
	fails 7 'must be absolute and begin with /sys/devices/' ADD host-device c1 \
		<<<"$(conf '{"kernelpath":"/sys/devices/../class"}')"
	fails 7 'must be absolute' ADD host-device c1 <<<"$(conf '{"kernelpath":"sys/devices/x"}')"
}

@test "wrong types" {
	local k
	for k in device hwaddr kernelpath pciBusID; do
		fails 7 '' ADD host-device c1 <<<"$(conf "{\"$k\":7}")"
	done
	link '.altnames // []' '[]'
}

@test "the container has the name already: nothing is moved" {
	host ip link set dev0 up
	inside c1 ip link add eth0 type bridge
	fails 102 'exists' ADD host-device c1 <<<"$(conf)"
	link_in .linkinfo.info_kind bridge
	is_cnibox || return 0 # 1.1.1 leaves it in the container
	link '.flags | contains(["UP"])' true
}

@test "without IPAM a result of 0.2.0 cannot be: refused at once" {
	only_cnibox "the Go plugin moves it first"
	fails 7 'cannot convert: no valid IP addresses' ADD host-device c1 <<<"$(VERSION=0.2.0 conf)"
	same "on the node" dev0 "$(links host)"
}

# ---- an ADD that fails ------------------------------------------------------------------------

# as_before CMD...: after CMD the device is what it was, and where it was.
as_before() {
	local before
	host ip link add br0 type bridge
	host ip link set br0 up
	host ip link set dev0 master br0
	host ip link set dev0 up alias 'the old one'
	host ip addr add 192.0.2.1/24 dev dev0
	host ip addr add 192.0.2.9 peer 192.0.2.10/32 dev dev0 metric 77 label dev0:x
	host ip addr add 2001:db8::1/64 dev dev0 nodad
	before=$(picture)
	"$@"
	same "the device" "$before" "$(picture)"
	same "in the container" "" "$(links c1)"
	same leases "" "$(leases)"
	nothing_left br0 dev0
}

@test "IPAM fails: the device is back with name, state, addresses, alias and bridge" {
	only_cnibox "the Go plugin leaves it in the container"
	as_before fails any '' ADD host-device c1 <<<"$(l3 '{"ipam":{"subnet":"10.1.0.0/33"}}')"
}

@test "IPAM gives no address: the device is back" {
	only_cnibox "the Go plugin leaves it in the container"
	mkdir "$T/bin"
	printf '#!/bin/sh\ncat >/dev/null\necho "{}"\n' >"$T/bin/empty"
	chmod +x "$T/bin/empty"
	CNI_PATH=$T/bin:$CNI_PLUGIN_DIR as_before fails any 'missing IP config' ADD host-device c1 \
		<<<"$(conf '{"ipam":{"type":"empty"}}')"
}

@test "a route that the kernel refuses: device and lease are back" {
	only_cnibox "the Go plugin leaves it in the container"
	as_before fails 100 'failed to add route' ADD host-device c1 \
		<<<"$(l3 '{"ipam":{"routes":[{"dst":"10.7.0.0/16","gw":"172.31.0.1"}]}}')"
}

unprinted() {
	CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 CNI_PATH=$CNI_PLUGIN_DIR \
		run host sh -c 'exec "$1" >/dev/full' host-device "$CNI_PLUGIN_DIR/host-device"
	[ "$status" -eq 1 ]
}
@test "the result cannot be printed: device and lease are back" {
	only_cnibox "the Go plugin leaves it in the container"
	as_before unprinted <<<"$(l3)"
}

# ---- DEL --------------------------------------------------------------------------------------

@test "the lease is released without namespace, and where the namespace is gone" {
	only_cnibox "the Go plugin keeps the lease"
	add c1 "$(l3)"
	NETNS='' ok DEL host-device c1 <<<"$(l3)"
	same leases "" "$(leases)"
	add c2 "$(l3)" 2>/dev/null || :
	host ip netns del c1
	del c1 "$(l3)"
	same leases "" "$(leases)"
}

@test "a virtual device ends with the namespace: DEL succeeds, the next ADD says why" {
	only_cnibox "the Go plugin's DEL fails"
	add c1 "$(l3)"
	host ip netns del c1
	wait_for 60 gone_out
	del c1 "$(l3)"
	del c1 "$(l3)"
	netns c2
	fails 7 'Link not found.*virtual' ADD host-device c2 <<<"$(l3)"
	same leases "" "$(leases)"
}
gone_out() { [ -z "$(links out)" ]; }

# The kernel takes a physical device back to the first namespace when its own ends. A virtual one does
# not live as long, so here it is carried over by hand, marks and alias included.
@test "the namespace is gone and the kernel has put the device back: it gets its name again" {
	only_cnibox "the Go plugin's DEL fails"
	local name
	for name in eth0 dev9999; do
		host ip link set dev0 up
		add c1 "$(l3)"
		inside c1 ip link set eth0 down
		inside c1 ip link set eth0 mtu 1300
		inside c1 ip link set eth0 name "$name"
		nsenter --net="/proc/$HOLDER/root/run/netns/c1" ip link set "$name" netns "$HOLDER"
		host ip netns del c1
		del c1 "$(l3)"
		same "on the node" dev0 "$(links host)"
		link '[.mtu, (.flags | contains(["UP"])), .ifalias // "", .altnames // []]' '[1400,true,"",[]]'
		same leases "" "$(leases)"
		netns c1
	done
}

@test "the same without a DEL: the next container's ADD takes it as if it were" {
	only_cnibox "the Go plugin does not find it"
	add c1 "$(conf)"
	nsenter --net="/proc/$HOLDER/root/run/netns/c1" ip link set eth0 netns "$HOLDER"
	host ip netns del c1
	netns c2
	add c2 "$(conf '{"hwaddr":"02:00:00:00:00:d0"}')"
	inside_is c2 '.[0].ifalias' dev0 ip -j link show eth0
	del c1 "$(conf)"
	inside c2 ip link show eth0
	del c2 "$(conf)"
	link '[.ifalias // "", .altnames // []]' '["",[]]'
}

@test "DEL of what was never there, twice, with a file for a namespace, without any key" {
	only_cnibox "the Go plugin's DEL fails"
	del c1 "$(conf)"
	del c9 "$(conf '{"device":"dev7"}')"
	host touch /run/netns/c8
	del c8 "$(conf)"
	del c1 '{"cniVersion":"1.0.0","name":"net1","type":"host-device"}'
	del c1 "$(conf '{"kernelpath":7,"pciBusID":"../x"}')"
	del c1 "$(conf '{"runtimeConfig":{"deviceID":"0000:99:00.0"}}')"
	same "on the node" dev0 "$(links host)"
}

@test "the config says nothing that is needed: DEL still finds the device" {
	only_cnibox "the Go plugin's DEL fails"
	add c1 "$(conf)"
	del c1 '{"cniVersion":"1.0.0","name":"net1","type":"host-device","device":7}'
	same "on the node" dev0 "$(links host)"
}

@test "a link that this attachment did not bring is not moved" {
	only_cnibox "the Go plugin takes whatever has the name and an alias"
	inside c1 ip link add eth0 type bridge
	del c1 "$(conf)"
	inside c1 ip link set eth0 alias 'an alias with blanks'
	del c1 "$(conf)"
	inside c1 ip link set eth0 alias other0
	del c1 "$(conf)"
	same "in the container" eth0 "$(links c1)"
	inside c1 ip link del eth0
	# Another attachment's device, under this one's name.
	add c1 "$(conf)" eth1
	inside c1 sh -c 'ip link set eth1 down && ip link set eth1 name eth0'
	del c1 "$(conf)" eth0
	same "in the container" eth0 "$(links c1)"
	del c1 "$(conf)" eth1
	same "on the node" dev0 "$(links host)"
}

@test "its name is taken on the node: DEL says by whom, and works once it is free" {
	add c1 "$(l3)"
	host ip link add dev0 type bridge
	fails 102 'file exists' DEL host-device c1 <<<"$(l3)"
	link .linkinfo.info_kind bridge
	same "in the container" 1 "$(links c1 | wc -w)"
	host ip link del dev0
	del c1 "$(l3)"
	link .linkinfo.info_kind veth
	same leases "" "$(leases)"
}

@test "what the Go plugin brought is checked and brought back" {
	only_cnibox "is about both"
	need_go
	local c k
	for k in '{}' '{"hwaddr":"02:00:00:00:00:d0"}'; do
		c=$(l3 "$k")
		CNI_PATH=$GO_DIR ok ADD "$GO_DIR/host-device" c1 <<<"$c"
		printf '%s' "$output" >"$T/result-c1-eth0"
		check "$c" c1
		del c1 "$c"
		link '.ifalias // ""' ''
		same "in the container" "" "$(links c1)"
		same leases "" "$(leases)"
	done
}

@test "the Go plugin checks what we brought, and brings it back" {
	only_cnibox "is about both"
	need_go
	local c
	c=$(l3)
	add c1 "$c"
	CNI_PATH=$GO_DIR ok CHECK "$GO_DIR/host-device" c1 <<<"$(with_prev "$c" c1)"
	CNI_PATH=$GO_DIR ok DEL "$GO_DIR/host-device" c1 <<<"$c"
	same "on the node" dev0 "$(links host)"
	# The marks that it left do not stand in the way, and go.
	add c1 "$c"
	del c1 "$c"
	link '.altnames // []' '[]'
}

# ---- CHECK, STATUS, GC ------------------------------------------------------------------------

@test "CHECK: content, also without IPAM; needs prevResult" {
	add c1 "$(conf)"
	check "$(conf)" c1
	fails 7 'Required prevResult missing' CHECK host-device c1 <<<"$(conf)"
}

@test "CHECK sees another MAC address, and that the interface or its address is gone" {
	add c1 "$(l3)"
	mismatch 'Mac' "$(l3)" c1 '.interfaces[0].mac = "02:00:00:00:00:01"'
	inside c1 ip addr del 10.1.0.2/24 dev eth0
	mismatch '' "$(l3)" c1
	inside c1 sh -c 'ip link set eth0 down; ip link set eth0 name gone0'
	mismatch '' "$(l3)" c1
}

@test "CHECK sees that the interface is down, or another one" {
	only_cnibox "the Go plugin compares name and MAC address"
	add c1 "$(conf)"
	inside c1 ip link set eth0 down
	mismatch 'is down' "$(conf)" c1
	inside c1 ip link set eth0 name gone0
	inside c1 ip link add eth0 address 02:00:00:00:00:d0 type bridge
	inside c1 ip link set eth0 up
	mismatch 'not the device' "$(conf)" c1
}

@test "STATUS: IPAM's answer, and whether the device can be there at all" {
	only_cnibox "1.1.1 does not know the verb"
	VERSION=1.1.0
	ok STATUS host-device c1 <<<"$(l3)"
	# In a container is not away.
	add c1 "$(l3)"
	ok STATUS host-device c1 <<<"$(l3)"
	fails 50 'there is no /sys/devices/nothing' STATUS host-device c1 <<<"$(conf '{"kernelpath":"/sys/devices/nothing"}')"
	fails any '' STATUS host-device c1 <<<"$(l3 '{"ipam":{"subnet":"nonsense"}}')"
	fails 7 'specify either' STATUS host-device c1 <<<'{"cniVersion":"1.1.0","name":"n","type":"host-device"}'
	ok STATUS host-device c1 <<<'{"cniVersion":"1.1.0","name":"n","type":"host-device","capabilities":{"deviceID":true}}'
}

@test "GC: devices in namespaces that live; only of this network, only what is not valid" {
	only_cnibox "1.1.1 does not know the verb"
	VERSION=1.1.0
	host ip link add dev1 type veth peer name eth1 netns out
	add c1 "$(l3)"
	add c1 "$(l3 '{"device":"dev1"}')" eth1
	ok GC host-device c1 <<<"$(l3 '{"name":"net2"}')"
	same "on the node" "" "$(links host)"
	ok GC host-device c1 <<<"$(jq -c '.["cni.dev/valid-attachments"] = [{containerID: "c1", ifname: "eth1"}]' <<<"$(l3)")"
	same "on the node" dev0 "$(links host)"
	same "in the container" eth1 "$(links c1)"
	same leases 10.1.0.3 "$(leases)"
}

@test "GC: devices that the kernel put back, and leases; only of this network, only what is not valid" {
	only_cnibox "1.1.1 does not know the verb"
	local c gc n
	VERSION=1.1.0
	host ip link add dev1 type veth peer name eth1 netns out
	host ip link add dev2 type veth peer name eth2 netns out
	for n in 2 3; do netns c$n; done
	add c1 "$(l3)"
	add c2 "$(l3 '{"device":"dev1"}')"
	add c3 "$(l3 '{"device":"dev2","name":"net2"}')"
	for n in 1 2 3; do
		inside c$n ip link set eth0 name lost$n 2>/dev/null ||
			inside c$n sh -c "ip link set eth0 down; ip link set eth0 name lost$n"
		nsenter --net="/proc/$HOLDER/root/run/netns/c$n" ip link set lost$n netns "$HOLDER"
	done
	gc=$(jq -c '.["cni.dev/valid-attachments"] = [{containerID: "c2", ifname: "eth0"}]' <<<"$(l3)")
	ok GC host-device c1 <<<"$gc"
	same "on the node" "dev0 lost2 lost3" "$(links host)"
	same leases 10.1.0.3 "$(leases)"
	ok GC host-device c1 <<<"$(l3)"
	same "on the node" "dev0 dev1 lost3" "$(links host)"
}

# ---- results ----------------------------------------------------------------------------------

@test "the result in every version, with mtu in 1.1.0" {
	local v
	for v in 0.2.0 0.3.0 0.3.1 0.4.0 1.0.0 1.1.0; do
		[ $v != 1.1.0 ] || is_cnibox || continue
		add c1 "$(VERSION=$v l3)"
		is .cniVersion $v
		case $v in
		0.2.0) is .ip4.ip 10.1.0.2/24 ;;
		1.1.0) is '.interfaces[0].mtu' 1400 ;;
		*) is '.interfaces | length' 1 ;;
		esac
		del c1 "$(VERSION=$v l3)"
		host sh -c 'rm -f /var/lib/cni/networks/net1/last_reserved_ip.0'
	done
}

@test "dns of the config is in the result, with IPAM and without" {
	local dns='{"dns":{"nameservers":["10.9.9.9"]}}'
	add c1 "$(l3 "$dns")"
	is '.dns.nameservers' '["10.9.9.9"]'
	del c1 "$(l3 "$dns")"
	only_cnibox "the Go plugin ignores it without IPAM"
	add c1 "$(conf "$dns")"
	is '.dns.nameservers' '["10.9.9.9"]'
}
