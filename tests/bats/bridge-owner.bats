# bridge: whose a link is, and how neighbours hear of it.

load bridge

# ---- owner marks ------------------------------------------------------------------------------

@test "the host's end carries its owner: alternative name and alias" {
	only_cnibox "leaves no mark"
	local hash
	add c1 "$(l3)"
	hash=$(printf 'net1\nc1\neth0' | sha512sum | cut -c1-32)
	link "$port" '.altnames' "[\"cnibox-$hash\"]"
	link "$port" '.ifalias' "cnibox $(printf net1 | sha512sum | cut -c1-16) $hash net1 c1 eth0"
	same "the name" "veth${hash:0:8}" "$port"
	link br0 .ifalias 'cnibox bridge'
}

@test "what a killed ADD left behind is replaced" {
	only_cnibox "finds nothing of its own again"
	add c1 "$(l2)"
	inside c1 ip link set eth0 down
	inside c1 ip link set eth0 name old0
	add c1 "$(l2)"
	same ports 1 "$(ports)"
	inside_is c1 '[.[].ifname]' '["lo","eth0"]' ip -j link
	del c1 "$(l2)"
	nothing_left br0
}

@test "DEL after an ADD that was killed, and ADD again" {
	only_cnibox "keeps the address"
	local c pid
	cat >"$T/bin/slow" <<-END
		#!/bin/sh
		cat >/dev/null
		if [ "\$CNI_COMMAND" = ADD ]; then echo \$PPID >$T/parent; exec sleep 100; fi
		echo "\$CNI_COMMAND" >>$T/slow.log
	END
	chmod +x "$T/bin/slow"
	c=$(l2 '{"isGateway":true,"ipMasq":true,"macspoofchk":true,"ipam":{"type":"slow"}}')
	netns c1
	(T=$T/bin && cni ADD bridge c1 <<<"$c") 3>&- &
	wait_for 60 test -s "$T/parent"
	same ports 1 "$(ports)"
	kill -KILL "$(<"$T/parent")"
	wait $! || :
	NETNS='' ok DEL bridge c1 <<<"$c"
	same "IPAM" DEL "$(<"$T/slow.log")"
	nothing_left br0
	add c1 "$(l3 '{"isGateway":true,"ipMasq":true,"macspoofchk":true}')"
}

@test "a foreign link that has our port's name is not touched" {
	only_cnibox "names are random"
	local name
	name=veth$(printf 'net1\nc1\neth0' | sha512sum | cut -c1-8)
	host ip link add "$name" type veth peer name other
	host ip link set "$name" alias mine
	add c1 "$(l2)"
	link "$name" '[.ifalias, .altnames, .master]' '["mine",null,null]'
	[ "$port" != "$name" ]
	del c1 "$(l2)"
	nothing_left br0 "$name" other
}

@test "the plugin's own namespace is refused before anything happens" {
	only_cnibox "acts first: DEL deletes the host's interface"
	local verb before
	host ln -s /proc/self/ns/net /run/netns/self
	host ip link add eth0 type veth peer name eth1
	before=$(host ip -j link)
	for verb in ADD DEL; do
		NETNS=/run/netns/self fails 8 'should not be the same' "$verb" bridge c1 <<<"$(l3)"
		same "links after $verb" "$before" "$(host ip -j link)"
	done
	same leases '' "$(leases)"
}

@test "CNI_NETNS_OVERRIDE lets the own namespace pass" {
	only_cnibox "deletes and rewires the host's interfaces"
	host ln -s /proc/self/ns/net /run/netns/self
	NETNS=/run/netns/self CNI_NETNS_OVERRIDE=TRUE ok ADD bridge c1 <<<"$(l3)"
	host ip link show eth0
	NETNS=/run/netns/self CNI_NETNS_OVERRIDE=1 ok DEL bridge c1 <<<"$(l3)"
	nothing_left br0
}

# ---- announcements ----------------------------------------------------------------------------

@test "neighbours hear of the addresses: gratuitous ARP and unsolicited NA" {
	only_cnibox "announces before the port forwards"
	local n
	add c1 "$(l2)"
	spawn c1 sh -c "exec tcpdump -lnep -i eth0 'arp or (icmp6 and ip6[40] == 136)' >$T/heard 2>$T/heard.err"
	wait_for 60 grep -q 'listening on' "$T/heard.err"
	for n in 2 3 4; do
		add "c$n" "$(dual '{"runtimeConfig":{"mac":"02:00:00:00:00:0'$n'"}}')"
		wait_for 60 grep -Eq "^.* 02:00:00:00:00:0$n > ff:ff:ff:ff:ff:ff.* (who-has 10.1.0.$n .*tell 10.1.0.$n|Reply 10.1.0.$n is-at)" "$T/heard"
		wait_for 60 grep -Eq "02:00:00:00:00:0$n > .* fd00:1::$n > ff02::1: .*neighbor advertisement" "$T/heard"
	done
}

@test "an address that moves to another container is reached there at once" {
	only_cnibox "announces before the port forwards"
	local c
	c=$(l3)
	add c1 "$c"
	add c2 "$(fake '{"ips":[{"address":"10.1.0.9/24"}]}')"
	serve c2 80
	same "before" "c2 10.1.0.2" "$(ask c1 tcp 10.1.0.9 80)"
	del c2 "$(fake '{"ips":[{"address":"10.1.0.9/24"}]}')"
	add c3 "$(fake '{"ips":[{"address":"10.1.0.9/24"}]}')"
	inside_is c1 '[.[] | select(.dst == "10.1.0.9") | .lladdr]' \
		"$(jq -c '[.interfaces[2].mac]' <<<"$output")" ip -j neigh || :
	serve c3 80
	same "after" "c3 10.1.0.2" "$(ask c1 tcp 10.1.0.9 80)"
}
