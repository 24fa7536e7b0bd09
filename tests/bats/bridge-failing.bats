# bridge: an ADD that fails leaves nothing.

load bridge

# ---- failing ADDs -----------------------------------------------------------------------------

@test "a repeated ADD fails and leaves the live attachment alone" {
	local before
	add c1 "$(l3 '{"isGateway":true}')"
	everything() {
		host ip -j link show master br0
		inside c1 ip -j link
		addrs host br0
		addrs c1 eth0
		inside c1 ip -j route
		leases
	}
	before=$(everything)
	fails 102 'container veth name .*eth0.* already exists' ADD bridge c1 <<<"$(l3 '{"isGateway":true}')"
	same state "$before" "$(everything)"
	serve host 80
	same answer "host 10.1.0.2" "$(ask c1 tcp 10.1.0.1 80)"
}

@test "an interface of another kind in the container's way" {
	netns c1
	inside c1 ip link add eth0 type veth peer name x0
	fails 102 'already exists' ADD bridge c1 <<<"$(l3)"
	inside c1 ip link show eth0
	same leases '' "$(leases)"
}

@test "a failing ADD leaves nothing: IPAM refuses" {
	only_cnibox "leaves the bridge and the veth pair"
	local c
	c=$(fake '{}' '{"isGateway":true,"ipMasq":true}')
	refuse ADD
	netns c1
	fails 55 'no more; really' ADD bridge c1 <<<"$c"
	nothing_left
	inside c1 sh -c '! ip link show eth0'
}

@test "IPAM's refusal is passed through" {
	local c
	c=$(fake '{}')
	refuse ADD
	netns c1
	fails any 'no more; really' ADD bridge c1 <<<"$c"
	is .code 55
}

@test "a failing ADD leaves nothing: the range is exhausted" {
	local c
	c=$(l2 '{"ipam":{"type":"host-local","subnet":"10.1.0.0/30"}}')
	add c1 "$c"
	netns c2
	fails any 'no IP addresses available in range set: 10.1.0.1-10.1.0.2' ADD bridge c2 <<<"$c"
	same leases 10.1.0.2 "$(leases)"
	! is_cnibox || same ports 1 "$(ports)"
	add c1 "$c" || :
	del c1 "$c"
	ok DEL bridge c2 <<<"$c"
	nothing_left br0
}

@test "a failing ADD leaves nothing: IPAM gives no address" {
	local c
	c=$(fake '{"routes":[]}')
	netns c1
	fails any 'IPAM plugin returned missing IP config' ADD bridge c1 <<<"$c"
	same calls $'ADD c1 eth0\nDEL c1 eth0' "$(<"$T/fake.log")"
	! is_cnibox || nothing_left
}

@test "a failing ADD leaves nothing: IPAM is not found, or its name is a path" {
	netns c1
	netns c2
	fails any 'failed to find plugin "nowhere" in path' ADD bridge c1 <<<"$(l2 '{"ipam":{"type":"nowhere"}}')"
	fails any 'invalid plugin name' ADD bridge c2 <<<"$(l2 '{"ipam":{"type":"../fake"}}')"
	! is_cnibox || nothing_left
}

@test "a failing ADD leaves nothing: IPAM says nonsense, or nothing" {
	local c
	c=$(fake '{}')
	netns c1
	netns c2
	netns c3
	echo 'nonsense' >"$T/result"
	fails any . ADD bridge c1 <<<"$c"
	printf '' >"$T/refuse.ADD"
	fails any 'netplugin failed with no error message: exit status 1' ADD bridge c2 <<<"$c"
	printf '#!/bin/sh\nkill -SEGV $$\n' >"$T/bin/fake"
	fails any . ADD bridge c3 <<<"$c"
	! is_cnibox || nothing_left
}

@test "a failing ADD leaves nothing: an address of IPAM's that the kernel refuses" {
	local c
	c=$(fake '{"ips":[{"address":"10.1.0.9/24"},{"address":"10.1.0.9/24"}]}' '{"isGateway":true}')
	netns c1
	fails 100 'failed to add IP addr .*10.1.0.9.* to "eth0"' ADD bridge c1 <<<"$c"
	same calls $'ADD c1 eth0\nDEL c1 eth0' "$(<"$T/fake.log")"
	! is_cnibox || nothing_left
}

@test "a failing ADD leaves nothing: the gateway's address is in conflict" {
	only_cnibox "leaves the veth pair and the address"
	taken_bridge
	host ip addr add 10.1.0.9/24 dev br0
	netns c1
	fails 102 'already has an IP address' ADD bridge c1 <<<"$(dual '{"isGateway":true,"ipMasq":true}')"
	nothing_left br0
	same "addresses of the bridge" 10.1.0.9/24 "$(addrs host br0)"
	inside c1 sh -c '! ip link show eth0'
}

@test "a failing ADD leaves nothing: the namespace is missing, a file or of another kind" {
	host touch /run/netns/file
	NETNS=/run/netns/none fails 8 'failed to open netns' ADD bridge c1 <<<"$(l3)"
	NETNS=/run/netns/file fails 8 'failed to open netns .*unknown FS magic' ADD bridge c1 <<<"$(l3)"
	NETNS=/proc/self/ns/uts fails 8 . ADD bridge c1 <<<"$(l3)"
	NETNS=/run/netns fails 8 . ADD bridge c1 <<<"$(l3)"
	NETNS='' fails 4 'CNI_NETNS' ADD bridge c1 <<<"$(l3)"
	same leases '' "$(leases)"
	! is_cnibox || nothing_left
}

@test "a failing ADD leaves nothing: forwarding cannot be enabled" {
	netns c1
	host sh -c 'mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys'
	fails 100 'forward' ADD bridge c1 <<<"$(l3 '{"isGateway":true}')"
	same leases '' "$(leases)"
	! is_cnibox || nothing_left
}

@test "a read-only /proc/sys does not matter where forwarding is on" {
	netns c1
	host sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward
		mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys'
	add c1 "$(l3 '{"isGateway":true}')"
}

@test "a failing ADD leaves nothing: the store cannot be written" {
	netns c1
	host sh -c 'mount -o remount,ro /var/lib/cni'
	fails any . ADD bridge c1 <<<"$(l3)"
	! is_cnibox || nothing_left
}

@test "a failing ADD leaves nothing: the result cannot be printed" {
	only_cnibox "leaves everything"
	netns c1
	CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 \
		host "$CNI_PLUGIN_DIR/bridge" <<<"$(dual '{"isDefaultGateway":true,"ipMasq":true}')" \
		>/dev/full 2>"$T/err" && false
	[ -s "$T/err" ]
	nothing_left
	inside c1 sh -c '! ip link show eth0'
}

@test "a failing ADD leaves alone what others have on the bridge it made" {
	only_cnibox "leaves everything"
	local c
	c=$(fake '{}')
	# While IPAM answers, somebody else's port appears.
	cat >"$T/bin/fake" <<-END
		#!/bin/sh
		[ "\$CNI_COMMAND" = ADD ] || exit 0
		ip link add p0 type veth peer name p1 && ip link set p0 master br0
		echo '{"code":55,"msg":"no more"}'
		exit 1
	END
	netns c1
	fails 55 'no more' ADD bridge c1 <<<"$c"
	nothing_left br0 p0 p1
	link p0 .master br0
}

@test "types that do not fit are refused before anything is made" {
	local k
	netns c1
	for k in '"bridge":5' '"isGateway":"yes"' '"mtu":"1500"' '"mtu":1.5' '"hairpinMode":1' '"vlan":"5"' \
		'"ipam":[]' '"ipam":{"type":5}' '"dns":[]' '"dns":{"nameservers":"x"}' '"args":5' \
		'"runtimeConfig":[]' '"runtimeConfig":{"mac":5}'; do
		fails 7 . ADD bridge c1 <<<"$(l2 "{$k}")"
	done
	if is_cnibox; then
		for k in '"vlanTrunk":5' '"vlanTrunk":[5]' '"vlanTrunk":[null]' '"portIsolation":0' \
			'"ipMasqBackend":1'; do
			fails 7 . ADD bridge c1 <<<"$(l2 "{$k}")"
		done
	fi
	nothing_left
}

@test "vlan: IDs out of range are refused" {
	local v
	netns c1
	for v in -1 4095 5000 99999999999; do
		fails 7 . ADD bridge c1 <<<"$(l2 '{"vlan":'$v'}')"
	done
	fails 7 'invalid VLAN ID 4095 \(must be between 0 and 409[45]' ADD bridge c1 <<<"$(l2 '{"vlan":4095}')"
	nothing_left
}

@test "vlanTrunk: what is no range is refused" {
	only_cnibox "newer than release 1.1.1"
	netns c1
	fails 7 'incorrect trunk minID parameter' ADD bridge c1 <<<"$(l2 '{"vlanTrunk":[{"minID":0,"maxID":5}]}')"
	fails 7 'incorrect trunk maxID parameter' ADD bridge c1 <<<"$(l2 '{"vlanTrunk":[{"minID":1,"maxID":4095}]}')"
	fails 7 'incorrect trunk id parameter' ADD bridge c1 <<<"$(l2 '{"vlanTrunk":[{"id":4095}]}')"
	fails 7 'minID is greater than maxID' ADD bridge c1 <<<"$(l2 '{"vlanTrunk":[{"minID":9,"maxID":5}]}')"
	fails 7 'configured simultaneously, maxID is missing' ADD bridge c1 <<<"$(l2 '{"vlanTrunk":[{"minID":9}]}')"
	fails 7 'configured simultaneously, minID is missing' ADD bridge c1 <<<"$(l2 '{"vlanTrunk":[{"maxID":9}]}')"
	nothing_left
}

@test "vlan: a VLAN interface's name that is too long is refused at once" {
	only_cnibox "fails late and leaves everything"
	netns c1
	fails 7 'too long' ADD bridge c1 <<<"$(l3 '{"bridge":"bridge-of-mine","vlan":100,"isGateway":true}')"
	nothing_left
}

@test "an unknown masquerading backend is refused at once" {
	only_cnibox "newer than release 1.1.1"
	netns c1
	fails 7 'unknown ipmasq backend "pf"' ADD bridge c1 <<<"$(l3 '{"ipMasq":true,"ipMasqBackend":"pf"}')"
	nothing_left
	add c1 "$(l3 '{"ipMasqBackend":"pf"}')"
}
