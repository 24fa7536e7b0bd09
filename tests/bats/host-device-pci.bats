# host-device: devices by PCI address and by deviceID, over a /sys made for the test.

load host-device

PCI=/sys/bus/pci/devices
AUX=/sys/bus/auxiliary/devices
ID=0000:04:00.5

# sys: an empty /sys/bus of the test's own.
sys() {
	host mount -t tmpfs t /sys/bus
	host mkdir -p $PCI $AUX
}
# pci ID DRIVER [FOLDER]: a device with that driver, and FOLDER (net/dev0).
pci() {
	host mkdir -p "$PCI/$1/${3-net/dev0}"
	[ -z "$2" ] || host sh -c 'mkdir -p /sys/bus/pci/drivers/$1 && ln -s /sys/bus/pci/drivers/$1 $2' pci "$2" "$PCI/$1/driver"
}
# by_id ID [KEYS]: as a runtime gives a device.
by_id() { conf "$(jq -nc --arg id "$1" --argjson keys "${2:-"{}"}" '{capabilities: {deviceID: true},
	runtimeConfig: {deviceID: $id}} * $keys')"; }
# round CONFIG: there and back.
round() {
	add c1 "$1"
	link_in .address 02:00:00:00:00:d0
	check "$1" c1
	del c1 "$1"
	link .address 02:00:00:00:00:d0
	same "in the container" "" "$(links c1)"
}

@test "pciBusID: the link of the device; pciID is in the result of 1.1.0" {
	sys
	pci $ID e1000
	round "$(conf "{\"pciBusID\":\"$ID\"}")"
	is_cnibox || return 0
	VERSION=1.1.0 add c1 "$(VERSION=1.1.0 conf "{\"pciBusID\":\"$ID\"}")"
	is '.interfaces[0].pciID' "\"$ID\""
	is '.interfaces[0].mtu' 1400
}

@test "pciBusID: of a virtio device it is the link below it, of several links the first" {
	sys
	pci $ID virtio-pci virtio3/net/dev0
	round "$(conf "{\"pciBusID\":\"$ID\"}")"
	host ip link add zz0 type veth peer name eth9 netns out
	host mkdir $PCI/$ID/virtio3/net/zz0
	round "$(conf "{\"pciBusID\":\"$ID\"}")"
}

@test "deviceID: of a PCI device it replaces pciBusID" {
	sys
	pci $ID e1000
	round "$(by_id $ID)"
	round "$(by_id $ID '{"pciBusID":"0000:99:00.0"}')"
}

@test "deviceID: an auxiliary device, such as a scalable function" {
	only_cnibox "1.1.1 knows PCI devices only"
	sys
	host mkdir -p $AUX/mlx5_core.sf.4/net/dev0
	round "$(by_id mlx5_core.sf.4)"
	round "$(by_id mlx5_core.sf.4 '{"pciBusID":"0000:99:00.0"}')"
	host rmdir $AUX/mlx5_core.sf.4/net/dev0
	fails 7 'failed to find host device.*mlx5_core.sf.4' ADD host-device c1 <<<"$(by_id mlx5_core.sf.4)"
}

@test "the name counts more than deviceID" {
	sys
	pci $ID e1000 net/dev7
	round "$(by_id $ID '{"device":"dev0"}')"
}

@test "an ID that is no device's: unknown, without link, without driver, or a path" {
	sys
	pci $ID e1000 .
	pci 0000:05:00.0 '' net/dev0
	fails 7 'failed to find host device|net directory' ADD host-device c1 <<<"$(conf "{\"pciBusID\":\"$ID\"}")"
	fails 7 '' ADD host-device c1 <<<"$(conf '{"pciBusID":"0000:99:00.0"}')"
	fails 7 '0000:05:00.0' ADD host-device c1 <<<"$(conf '{"pciBusID":"0000:05:00.0"}')"
	only_cnibox "1.1.1 does not look at the ID, nor at deviceID"
	fails 7 'not found or unsupported' ADD host-device c1 <<<"$(by_id 0000:99:00.0)"
	fails 7 'not the ID of a device' ADD host-device c1 <<<"$(conf '{"pciBusID":"../../etc"}')"
	fails 7 'not the ID of a device' ADD host-device c1 <<<"$(by_id ..)"
	fails 7 'deviceID' ADD host-device c1 <<<"$(conf '{"runtimeConfig":{"deviceID":7}}')"
	same "on the node" dev0 "$(links host)"
}

@test "DEL of a device that was unplugged, or has lost its driver, brings the link back" {
	only_cnibox "the Go plugin's DEL fails"
	local c
	sys
	pci $ID e1000
	c=$(conf "{\"pciBusID\":\"$ID\",\"ipam\":{\"type\":\"host-local\",\"subnet\":\"10.1.0.0/24\"}}")
	add c1 "$c"
	host rm $PCI/$ID/driver
	del c1 "$c"
	host ln -s /sys/bus/pci/drivers/e1000 $PCI/$ID/driver
	add c1 "$c"
	host rm -r $PCI/$ID
	del c1 "$c"
	same "on the node" dev0 "$(links host)"
	same leases "" "$(leases)"
}

@test "DPDK: no link is touched, the result still says what there is" {
	local c driver
	sys
	for driver in vfio-pci uio_pci_generic igb_uio; do
		host rm -rf $PCI/$ID
		pci $ID $driver .
		c=$(conf "{\"pciBusID\":\"$ID\",\"device\":\"dev0\",\"ipam\":{\"type\":\"host-local\",\"subnet\":\"10.1.0.0/24\"}}")
		ok ADD host-device c1 <<<"$c"
		printf '%s' "$output" >"$T/result-c1-eth0"
		same "on the node" dev0 "$(links host)"
		same "in the container" "" "$(links c1)"
		holds '.ips[0].address | startswith("10.1.0.")'
		ok CHECK host-device c1 <<<"$(with_prev "$c" c1)"
		del c1 "$c"
		same leases "" "$(leases)"
	done
	link '.altnames // []' '[]'
}

@test "DPDK: the result's interface has name, sandbox and pciID, and no MAC address" {
	only_cnibox "1.1.1 has none in its result"
	local c
	sys
	pci $ID vfio-pci .
	for c in "$(VERSION=1.1.0 conf "{\"pciBusID\":\"$ID\"}")" "$(VERSION=1.1.0 by_id $ID)"; do
		add c1 "$c"
		is '.interfaces' "[{\"name\":\"eth0\",\"sandbox\":\"/run/netns/c1\",\"pciID\":\"$ID\"}]"
		check "$c" c1
		del c1 "$c"
	done
	c=$(VERSION=1.1.0 conf "{\"pciBusID\":\"$ID\",\"ipam\":{\"type\":\"host-local\",\"subnet\":\"10.1.0.0/24\"}}")
	add c1 "$c"
	is '.ips' '[{"address":"10.1.0.2/24","gateway":"10.1.0.1","interface":0}]'
}

@test "DPDKMode of the config is nothing" {
	only_cnibox "the Go plugin reads it by accident"
	round "$(conf '{"DPDKMode":true}')"
}

@test "STATUS says when the device is not there, in a container or not" {
	only_cnibox "1.1.1 does not know the verb"
	VERSION=1.1.0
	sys
	fails 50 "there is no $PCI/$ID" STATUS host-device c1 <<<"$(conf "{\"pciBusID\":\"$ID\"}")"
	pci $ID ''
	ok STATUS host-device c1 <<<"$(conf "{\"pciBusID\":\"$ID\"}")"
	fails 7 'not the ID' STATUS host-device c1 <<<"$(conf '{"pciBusID":"a/b"}')"
}
