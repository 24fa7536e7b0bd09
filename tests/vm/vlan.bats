# bridge with VLANs: vlan, vlanTrunk, preserveDefaultVlan and the gateway on a VLAN interface. Needs a
# kernel with VLAN filtering in bridges: tests/vm/run bats tests/vm/vlan.bats
#
# Executing a program takes a tenth of a second in there: what the shell can do it does itself.

load ../bats/helpers

setup() {
	need_applet bridge host-local
	sandbox
	host ip -batch - <<<$'link add probe type bridge vlan_filtering 1\nlink del probe' 2>/dev/null ||
		skip "this kernel's bridges cannot filter VLANs"
	SYS=/proc/$HOLDER/root/sys/class/net
}
teardown() { sandbox_end; }

GO_DIR=${CNI_GO_DIR:-/usr/lib/cni}

# conf [KEYS]: layer 2. l3 [KEYS] [SUBNET]: with addresses. KEYS is an object; the network is $NET, the
# bridge $BRIDGE.
conf() {
	local keys=${1:-"{}"}
	keys=${keys#\{}
	[ "$keys" = '}' ] || keys=,$keys
	printf '%s' "{\"cniVersion\":\"${VERSION:-1.0.0}\",\"name\":\"${NET:-net1}\",\"type\":\"bridge\"," \
		"\"bridge\":\"${BRIDGE:-br0}\"$keys"
}
l3() {
	local keys=${1:-"{}"}
	keys=${keys#\{}
	[ "$keys" = '}' ] || keys=,$keys
	conf "{\"ipam\":{\"type\":\"host-local\",\"subnet\":\"${2:-10.1.0.0/24}\"}$keys"
}

# add ID CONFIG: the namespace and the ADD. Sets port and keeps the result.
add() {
	netns "$1"
	ok ADD bridge "$1" <<<"$2"
	[[ $output =~ \"name\":\ *\"(veth[0-9a-f]+)\" ]]
	port=${BASH_REMATCH[1]}
	printf '%s' "$output" >"$T/result-$1"
}
del() { ok DEL bridge "$1" <<<"$2"; }
with_prev() { printf '%s' "${1%\}},\"prevResult\":$(<"$T/result-$2")}"; }
check() { ok CHECK bridge "$2" <<<"$(with_prev "$1" "$2")"; }
mismatch() { fails 101 "$1" CHECK bridge "$3" <<<"$(with_prev "$2" "$3")"; }

# The VLANs of a port: "1 10p 20-29 u5": p for the PVID, u for untagged, both for an access VLAN.
vlans() {
	local line word out='' id flags first=1
	while IFS= read -r line; do
		# A heading; then the port's name before its first VLAN.
		[ "$first" != 1 ] || { first=2 && continue; }
		[ "$first" != 2 ] || { first=0 && line=${line#"$1"}; }
		id='' flags=''
		for word in $line; do
			case $word in
			PVID) flags+=p ;;
			Untagged) flags+=u ;;
			[0-9]*) id=$word ;;
			esac
		done
		[ -z "$id" ] || out+=" $id$flags"
	done <<<"$(host bridge -compressvlans vlan show dev "$1")"
	echo "${out# }"
}
filtering() { echo "$(<"$SYS/${1:-br0}/bridge/vlan_filtering")"; }

# addrs NAME LINK: its IPv4 addresses.
addrs() {
	local _ address out=''
	while read -r _ _ _ address _; do
		out+=" $address"
	done <<<"$(inside "$1" ip -4 -o addr show dev "$2")"
	out=${out# }
	echo "${out% }"
}

# ports: the names of the bridge's ports but those given; number_of_ports: how many there are.
ports() {
	local p
	for p in "$SYS"/br0/brif/*; do
		p=${p##*/}
		case " $* " in *" $p "*) ;; *) echo "$p" ;; esac
	done
}
number_of_ports() {
	local all
	all=("$SYS"/br0/brif/*)
	echo ${#all[@]}
}

@test "vlan: the port is in that VLAN; other VLANs are out of reach, the same one is not" {
	add c1 "$(l3 '{"vlan":10}')"
	same "VLAN filtering" 1 "$(filtering)"
	if is_cnibox; then
		same "VLANs of the port" 10pu "$(vlans "$port")"
	else
		[[ " $(vlans "$port") " == *" 10pu "* ]]
	fi
	add c2 "$(l3 '{"vlan":10}')"
	add c3 "$(l3 '{"vlan":20}')"
	add c4 "$(l3)"
	same "VLANs of a port without" 1pu "$(vlans "$port")"
	serve c2 80
	serve c3 80
	serve c4 80
	same "same VLAN" "c2 10.1.0.2" "$(ask c1 tcp 10.1.0.3 80)"
	same "another VLAN" "" "$(knock c1 tcp 10.1.0.4 80)"
	same "no VLAN" "" "$(knock c1 tcp 10.1.0.5 80)"
	# The Go plugin's CHECK stumbles over the bridge's address, which follows the ports.
	! is_cnibox || check "$(l3 '{"vlan":10}')" c1
	for c in c1 c2 c3 c4; do
		del $c "$(l3 '{"vlan":10}')"
	done
	nothing_left br0
}

@test "vlanTrunk: the union of ranges and single IDs, tagged; untagged frames are VLAN 1" {
	only_cnibox "newer than release 1.1.1"
	local c first
	c=$(conf '{"vlanTrunk":[{"minID":100,"maxID":105},{"id":103},{"id":200},{"minID":104,"maxID":110,"id":7}]}')
	add c1 "$c"
	first=$port
	same "VLAN filtering" 1 "$(filtering)"
	same "VLANs of the port" "1pu 7 100-110 200" "$(vlans "$port")"
	check "$c" c1
	add c2 "$(conf '{"vlan":107}')"
	add c3 "$(conf '{"vlan":111}')"
	inside c1 ip -batch - <<-END
		addr add 10.1.0.1/24 dev eth0
		link add link eth0 name eth0.107 up type vlan id 107
		addr add 10.107.0.1/24 dev eth0.107
		link add link eth0 name eth0.111 up type vlan id 111
		addr add 10.111.0.1/24 dev eth0.111
	END
	inside c2 ip addr add 10.107.0.2/24 dev eth0
	inside c3 ip addr add 10.111.0.2/24 dev eth0
	serve c2 80
	serve c3 80
	same "in the trunk" "c2 10.107.0.1" "$(ask c1 tcp 10.107.0.2 80)"
	same "not in the trunk" "" "$(knock c1 tcp 10.111.0.2 80)"
	host bridge -batch - <<<"vlan del dev $port vid 107
vlan del dev $first vid 107"
	mismatch 'VLAN 107 is missing from its trunk' "$c" c1
	del c1 "$c"
}

@test "vlan and vlanTrunk together: the trunk leaves the port's own VLAN as it is" {
	only_cnibox "newer than release 1.1.1"
	local c
	c=$(conf '{"vlan":102,"vlanTrunk":[{"minID":100,"maxID":104}]}')
	add c1 "$c"
	same "VLANs of the port" "100-101 102pu 103-104" "$(vlans "$port")"
	check "$c" c1
	host bridge vlan add dev "$port" vid 103 pvid
	mismatch 'VLAN 102 is not its PVID' "$c" c1
}

@test "vlanTrunk: a trunk with VLAN 1, every VLAN there is, an empty list" {
	only_cnibox "newer than release 1.1.1"
	add c1 "$(conf '{"vlanTrunk":[{"minID":1,"maxID":3}]}')"
	same "with VLAN 1" "1pu 2-3" "$(vlans "$port")"
	add c2 "$(conf '{"vlanTrunk":[{"minID":1,"maxID":4094}]}')"
	same "all" "1pu 2-4094" "$(vlans "$port")"
	check "$(conf '{"vlanTrunk":[{"minID":1,"maxID":4094}]}')" c2
	add c3 "$(BRIDGE=br1 conf '{"vlanTrunk":[]}')"
	same "none" 1pu "$(vlans "$port")"
	same "VLAN filtering" 1 "$(filtering br1)"
}

@test "preserveDefaultVlan keeps the default VLAN as a member" {
	only_cnibox "newer than release 1.1.1"
	add c1 "$(conf '{"vlan":10,"preserveDefaultVlan":true}')"
	same "vlan" "1u 10pu" "$(vlans "$port")"
	add c2 "$(conf '{"vlanTrunk":[{"id":10}],"preserveDefaultVlan":true}')"
	same "vlanTrunk" "1pu 10" "$(vlans "$port")"
	add c3 "$(conf '{"preserveDefaultVlan":false}')"
	same "neither" "1pu" "$(vlans "$port")"
}

@test "the default VLAN of a bridge that was there goes, whatever it is" {
	only_cnibox "release 1.1.1 keeps it"
	host ip link add br0 type bridge vlan_filtering 1 vlan_default_pvid 5
	add c1 "$(conf '{"vlan":10}')"
	same "vlan" "10pu" "$(vlans "$port")"
	add c2 "$(conf '{"vlanTrunk":[{"id":10}]}')"
	same "vlanTrunk" "1pu 10" "$(vlans "$port")"
	add c3 "$(conf)"
	same "neither" "5pu" "$(vlans "$port")"
}

@test "a bridge that was there without VLAN filtering is refused, and stays as it is" {
	only_cnibox "stores the VLANs and separates nobody"
	host ip link add br0 type bridge
	netns c1
	fails 102 'without VLAN filtering' ADD bridge c1 <<<"$(l3 '{"vlan":10}')"
	fails 102 'without VLAN filtering' ADD bridge c1 <<<"$(l3 '{"vlanTrunk":[{"id":10}]}')"
	same "VLAN filtering" 0 "$(filtering)"
	nothing_left br0
	add c2 "$(l3)"
}

@test "isGateway: the gateway is on an interface of the VLAN, not on the bridge" {
	only_cnibox "newer than release 1.1.1"
	local one two gate
	one=$(l3 '{"vlan":10,"isDefaultGateway":true}')
	two=$(NET=net2 l3 '{"vlan":20,"isDefaultGateway":true}' 10.2.0.0/24)
	add c1 "$one"
	is '[.interfaces[].name] | del(.[1])' '["br0","eth0","br0.10"]'
	is '.interfaces[3]' "{\"name\":\"br0.10\",\"mac\":\"$(<"$SYS/br0.10/address")\"}"
	is '[.ips[0].interface, .routes]' '[2,[{"dst":"0.0.0.0/0","gw":"10.1.0.1"}]]'
	same "addresses" "10.1.0.1/24 and" "$(addrs host br0.10) and$(addrs host br0)"
	gate=$(ports "$port")
	same "VLANs of the gateway's port" 10pu "$(vlans "$gate")"
	serve host 80
	same "gateway" "host 10.1.0.2" "$(ask c1 tcp 10.1.0.1 80)"
	add c2 "$one"
	add c3 "$two"
	is '[.interfaces[].name] | del(.[1])' '["br0","eth0","br0.20"]'
	same "ports" 5 "$(number_of_ports)"
	serve c2 80
	same "gateway of the other VLAN" "host 10.2.0.2" "$(ask c3 tcp 10.2.0.1 80)"
	same "same VLAN" "c2 10.1.0.2" "$(ask c1 tcp 10.1.0.3 80)"
	same "forwarded from VLAN to VLAN" "c2 10.2.0.2" "$(ask c3 tcp 10.1.0.3 80)"
	check "$one" c1
	check "$two" c3
	del c1 "$one"
	del c2 "$one"
	del c3 "$two"
	nothing_left br0 br0.10 br0.20 $(ports)
	same "ports" 2 "$(number_of_ports)"
}

@test "the bridge by an alternative name: the gateway's interface and the rules are named after the bridge" {
	only_cnibox "newer than release 1.1.1"
	local c
	host ip -batch - <<<"link add averyverylong type bridge vlan_filtering 1
link add br0 type bridge vlan_filtering 1
link property add dev averyverylong altname long
link property add dev br0 altname the-bridge"
	c=$(BRIDGE=the-bridge l3 '{"vlan":10,"isGateway":true,"ipMasq":true}')
	add c1 "$c"
	is '.interfaces[3].name' br0.10
	[[ $(host nft list set inet cni_plugins_masquerade gateways) == *'"br0"'* ]]
	check "$c" c1
	del c1 "$c"
	# With the VLAN it is longer than a name may be.
	netns c2
	fails 7 'averyverylong.100" is too long' ADD bridge c2 <<<"$(BRIDGE=long NET=net2 l3 '{"vlan":100,"isGateway":true}')"
	nothing_left br0 br0.10 averyverylong $(BRIDGE=br0 ports)
}

@test "a gateway that was left outside its VLAN is put into it" {
	only_cnibox "newer than release 1.1.1"
	local c gate
	c=$(l3 '{"vlan":10,"isGateway":true}')
	add c1 "$c"
	gate=$(ports "$port")
	# As a process leaves it that is killed between the two.
	host bridge -batch - <<<"vlan del dev $gate vid 10
vlan add dev $gate vid 1 pvid untagged"
	add c2 "$c"
	same "VLANs of the gateway's port" 10pu "$(vlans "$gate")"
	serve host 80
	same "gateway" "host 10.1.0.3" "$(ask c2 tcp 10.1.0.1 80)"
}

@test "GC takes the bridge and its VLAN interfaces when nobody is left" {
	only_cnibox "has no GC"
	local c
	VERSION=1.1.0
	c=$(l3 '{"vlan":10,"isGateway":true}')
	add c1 "$c"
	ok GC bridge '' <<<"$(jq -c '.["cni.dev/valid-attachments"] = [{containerID: "c1", ifname: "eth0"}]' <<<"$c")"
	check "$c" c1
	ok GC bridge '' <<<"$(jq -c '.["cni.dev/valid-attachments"] = []' <<<"$c")"
	nothing_left
}

@test "a failing first ADD leaves neither bridge nor VLAN interface" {
	only_cnibox "leaves everything"
	netns c1
	fails 102 'already has an IP address different from 10.2.0.1/24' ADD bridge c1 <<<"$(conf '{"vlan":10,
		"isGateway":true,"ipam":{"type":"host-local",
		"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.2.0.0/24"}]]}}')"
	nothing_left
}

@test "two first ADDs at the same moment share the VLAN interface" {
	only_cnibox "the loser fails"
	local c i pids=()
	c=$(l3 '{"vlan":10,"isDefaultGateway":true}')
	for i in 1 2; do
		netns p$i
		mkdir "$T/p$i"
	done
	for i in 1 2; do
		(
			T=$T/p$i
			wait_for 30 test -e "$T/../go"
			ok ADD bridge p$i <<<"$c"
		) 3>&- &
		pids+=($!)
	done
	touch "$T/go"
	for i in "${pids[@]}"; do
		wait "$i"
	done
	same "ports" 3 "$(number_of_ports)"
	same "address" 10.1.0.1/24 "$(addrs host br0.10)"
	serve host 80
	[[ $(ask p1 tcp 10.1.0.1 80) == host* && $(ask p2 tcp 10.1.0.1 80) == host* ]]
}

@test "DEL of what the Go plugin made, with a VLAN" {
	only_cnibox "is about both"
	[ -x "$GO_DIR/bridge" ] || skip "no Go plugins in $GO_DIR"
	netns c1
	CNI_PATH=$GO_DIR ok ADD "$GO_DIR/bridge" c1 <<<"$(l3 '{"vlan":10}')"
	add c2 "$(l3 '{"vlan":10}')"
	serve c2 80
	same "one VLAN" "c2 10.1.0.2" "$(ask c1 tcp 10.1.0.3 80)"
	del c1 "$(l3 '{"vlan":10}')"
	CNI_PATH=$GO_DIR ok DEL "$GO_DIR/bridge" c2 <<<"$(l3 '{"vlan":10}')"
	nothing_left br0
}
