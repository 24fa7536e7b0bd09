# Traffic through the node that is not addressed to it is never rewritten by portmap, whatever the
# configuration. Beside what tests/bats/portmap.bats has: every combination of options, both ways.

load ../bats/helpers

# left 192.0.2.2 - node - 198.51.100.2 right; the container behind a bridge of the node.
setup() {
	sandbox
	netns left && netns right && netns c1
	host sh -ec 'sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
		side() {
			ip link add $1 type veth peer name port netns $1
			ip addr add $2.1/24 dev $1; ip addr add $3::1/64 dev $1 nodad; ip link set $1 up
			ip -n $1 addr add $2.2/24 dev port; ip -n $1 addr add $3::2/64 dev port nodad; ip -n $1 link set port up
			ip -n $1 route add default via $2.1; ip -n $1 route add default via $3::1
		}
		side left 192.0.2 2001:db8:1
		side right 198.51.100 2001:db8:2'
	BR='{"cniVersion":"1.0.0","name":"n","type":"bridge","bridge":"cni0","isGateway":true,"ipam":{"type":"host-local","ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd01::/64"}]],"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]}}'
	ok ADD bridge c1 <<<"$BR"
	PREV=$output
	serve right 8080
	serve right 8080 tcp -6
	serve right 8080 udp
	serve c1 80
	serve c1 80 tcp -6
	serve c1 80 udp
	# Neighbours are looked for with patience of their own.
	wait_for 60 answered
}
teardown() { sandbox_end; }

answered() { [ -n "$(knock left tcp 2001:db8:2::2 8080)" ]; }

# mapped OPTIONS MAPPING: portmap ADD with these.
mapped() {
	CONF="{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"type\":\"portmap\"${1:+,$1},\"runtimeConfig\":{\"portMappings\":[$2]},\"prevResult\":$PREV}"
	ok ADD portmap c1 <<<"$CONF"
}

# passes WHAT: what goes through the node gets where it was sent to, from where it came.
passes() {
	same "$1: tcp through the node" 'right 192.0.2.2' "$(ask left tcp 198.51.100.2 8080)"
	same "$1: udp through the node" 'right 192.0.2.2' "$(ask left udp 198.51.100.2 8080)"
	same "$1: tcp6 through the node" 'right 2001:db8:1::2' "$(ask left tcp 2001:db8:2::2 8080)"
	same "$1: from the container" 'right 10.1.0.2' "$(inside right ip route replace 10.1.0.0/24 via 198.51.100.1; ask c1 tcp 198.51.100.2 8080)"
}

ports() { echo "{\"hostPort\":8080,\"containerPort\":80,\"protocol\":\"tcp\"${1:+,\"hostIP\":\"$1\"}},{\"hostPort\":8080,\"containerPort\":80,\"protocol\":\"udp\"${1:+,\"hostIP\":\"$1\"}}"; }

@test "whatever the options are" {
	local options
	passes before
	for options in '' '"snat":false' '"snat":true' '"masqAll":true' '"snat":false,"masqAll":true' '"markMasqBit":0'; do
		mapped "$options" "$(ports)"
		passes "options $options"
		same "reached" c1 "$(ask left tcp 192.0.2.1 8080 | cut -d' ' -f1)"
		ok DEL portmap c1 <<<"$CONF"
	done
}

@test "whatever the host address is" {
	local ip
	for ip in 0.0.0.0 192.0.2.1 127.0.0.1 :: 2001:db8:1::1; do
		mapped '' "$(ports $ip)"
		passes "hostIP $ip"
		ok DEL portmap c1 <<<"$CONF"
	done
	# Not even when it is the other side's own: it is not the node's.
	mapped '' "$(ports 198.51.100.2)"
	passes "hostIP 198.51.100.2"
	ok DEL portmap c1 <<<"$CONF"
}

@test "whatever the conditions are" {
	local c
	for c in '"conditionsV4":["-s","192.0.2.0/24"]' '"conditionsV4":["-d","198.51.100.2"]' '"conditionsV4":["!","-d","192.0.2.1"]' \
		'"conditionsV6":["-d","2001:db8:2::2"]'; do
		mapped "$c" "$(ports)"
		passes "$c"
		ok DEL portmap c1 <<<"$CONF"
	done
}

@test "an address that the node gives up belongs to others from then on" {
	host ip addr add 203.0.113.7/32 dev lo
	mapped '' "$(ports)"
	same "while it is the node's" c1 "$(ask left tcp 203.0.113.7 8080 | cut -d' ' -f1)"
	host ip addr del 203.0.113.7/32 dev lo
	inside right ip addr add 203.0.113.7/32 dev lo
	host ip route add 203.0.113.7/32 via 198.51.100.2
	same "when it is not" 'right 192.0.2.2' "$(ask left tcp 203.0.113.7 8080)"
}
