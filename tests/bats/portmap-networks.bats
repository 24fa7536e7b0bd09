# portmap: two networks of one container with the same mappings, as runtimes that send all ports to every network
# have it. The port stays with the first; when that goes, the other takes it up. The topology is in portmap.bash.

load helpers
load portmap

# second: another bridge, cni1 with 10.23.0.0/24, on which container a is .2 as eth1.
second() {
	topology
	host sh -c 'set -e
		ip link add cni1 type bridge && ip link set cni1 up
		ip addr add 10.23.0.1/24 dev cni1
		ip link add va1 type veth peer name eth1 netns a
		ip link set va1 master cni1 up
		ip -n a addr add 10.23.0.2/24 dev eth1
		ip -n a link set eth1 up'
}
conf2() { NET=net2 IFNAME=eth1 conf a 2 "$@" | jq '.prevResult.ips = [{address: "10.23.0.2/24", interface: 1}]'; }
two() { ok "$1" portmap a eth1 <<<"$(conf2 "${@:2}")"; }

@test "the other network takes the ports up when the first one goes" {
	only_cnibox "Go maps both"
	second
	serve a 80
	serve a 81
	maps="8080:80 8081:81@192.0.2.1"
	add a 2 "$maps"
	two ADD "$maps"
	# Nothing is set for a network that maps nothing.
	same "route_localnet of the other" 0 "$(localnet cni1)"
	check a 2 "$maps"
	two CHECK "$maps"
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	host nft list map inet cnibox_portmap ports4 | grep -qF "10.22.0.2 . 80"
	ok DEL portmap a <<<'{"cniVersion":"1.0.0","name":"net1","type":"portmap"}'
	host nft list map inet cnibox_portmap ports4 | grep -qF "10.23.0.2 . 80"
	inside a ip route replace default via 10.23.0.1
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	answers x tcp 192.0.2.1 8081 "a 192.0.2.9"
	answers host tcp 127.0.0.1 8080 "a 10.23.0.1"
	answers a tcp 192.0.2.1 8080 "a 10.23.0.1"
	two CHECK "$maps"
	two DEL "$maps"
	answers x tcp 192.0.2.1 8080 ""
	nothing_left cni0 cni1 va vb vx va1
	same "route_localnet" "0 0" "$(localnet cni0) $(localnet cni1)"
}

@test "the heir goes first, or both are collected" {
	only_cnibox "Go has no GC"
	second
	serve a 80
	VERSION=1.1.0
	add a 2 "8080:80"
	two ADD "8080:80"
	two DEL "8080:80"
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	del a 2 "8080:80"
	nothing_left cni0 cni1 va vb vx va1
	add a 2 "8080:80"
	two ADD "8080:80"
	ok GC portmap - <<<'{"cniVersion":"1.1.0","name":"net1","type":"portmap"}'
	two CHECK "8080:80"
	answers host tcp 127.0.0.1 8080 "a 10.23.0.1"
	ok GC portmap - <<<'{"cniVersion":"1.1.0","name":"net2","type":"portmap"}'
	nothing_left cni0 cni1 va vb vx va1
}

@test "some ports are shared, some are each one's own, to one container port" {
	only_cnibox "Go maps both"
	second
	serve a 80
	add a 2 "8080:80 8081:80"
	two ADD "8080:80 8082:80 53:53/udp"
	same "route_localnet of the other" 1 "$(localnet cni1)"
	two CHECK "8080:80 8082:80 53:53/udp"
	del a 2 -
	two CHECK "8080:80 8082:80 53:53/udp"
	answers host tcp 127.0.0.1 8080 "a 10.23.0.1"
	answers host tcp 127.0.0.1 8082 "a 10.23.0.1"
	answers host tcp 127.0.0.1 8081 ""
	two DEL -
	nothing_left cni0 cni1 va vb vx va1
}

@test "three networks: each goes, the next one takes up" {
	only_cnibox "Go maps both"
	second
	serve a 80
	third() { NET=net3 IFNAME=eth2 ok "$1" portmap a eth2 <<<"$(NET=net3 IFNAME=eth2 conf a 22 "8080:80" |
		jq '.prevResult.ips = [{address: "10.22.0.22/24", interface: 1}]')"; }
	host ip -n a addr add 10.22.0.22/24 dev eth0
	add a 2 "8080:80"
	two ADD "8080:80"
	third ADD
	third CHECK
	del a 2 -
	answers host tcp 127.0.0.1 8080 "a 10.23.0.1"
	third CHECK
	two DEL -
	answers host tcp 127.0.0.1 8080 "a 10.22.0.1"
	third CHECK
	third DEL
	nothing_left cni0 cni1 va vb vx va1
}

@test "ADD again keeps the heirs; what it gives up they get" {
	only_cnibox "Go maps both"
	second
	serve a 80
	add a 2 "8080:80 8081:80"
	two ADD "8080:80 8081:80"
	add a 2 "8080:80 8081:80"
	two ADD "8080:80 8081:80"
	add a 2 "8081:80"
	host nft list map inet cnibox_portmap ports4 | tr -d '\n\t' | grep -qE '8080 comment[^,]*: 10.23.0.2 . 80'
	host nft list map inet cnibox_portmap ports4 | tr -d '\n\t' | grep -qE '8081 comment[^,]*: 10.22.0.2 . 80'
	check a 2 "8081:80"
	two CHECK "8080:80 8081:80"
	answers host tcp 127.0.0.1 8080 "a 10.23.0.1"
	del a 2 -
	answers host tcp 127.0.0.1 8081 "a 10.23.0.1"
	two DEL -
	nothing_left cni0 cni1 va vb vx va1
}

@test "the heirs' conditions are heeded" {
	only_cnibox "Go maps both"
	second
	keys='{"conditionsV4":["-s","192.0.2.0/24"]}'
	serve a 80
	add a 2 "8080:80" "$keys"
	two ADD "8080:80" "$keys"
	del a 2 -
	inside a ip route replace default via 10.23.0.1
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	answers b tcp 10.22.0.1 8080 ""
	two CHECK "8080:80" "$keys"
	two DEL -
	nothing_left cni0 cni1 va vb vx va1
}

@test "another container does not get the port while the heir is there" {
	only_cnibox "Go maps both"
	second
	add a 2 "8080:80"
	two ADD "8080:80"
	del a 2 -
	fails 102 'already mapped to 10.23.0.2 by container "a" \(network "net2", interface "eth1"\)' \
		ADD portmap b <<<"$(conf b 3 "8080:80")"
}
