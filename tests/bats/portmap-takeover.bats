# portmap: whose host port it is. That of the living stays theirs, also when the caller cannot see them; the
# dead one's and the older sandbox's of the same pod are taken over. The topology is in portmap.bash.

load helpers
load portmap

# blind NAME: a plugin that does not see the namespace path /run/netns/NAME, as when the caller lives in another
# mount namespace.
blind() {
	printf '#!/bin/sh\nexec unshare -m sh -c "umount -l /run/netns/%s && exec %s/portmap"\n' "$1" "$CNI_PLUGIN_DIR" >"$T/blind"
	chmod +x "$T/blind"
}

@test "a living container's port stays its own when the caller does not see its namespace path" {
	only_cnibox "Go lets the first one win silently"
	topology
	serve a 80
	add a 2 "8080:80"
	blind a
	fails 102 'host port 8080/tcp is already mapped to 10.22.0.2 by container "a" .*/run/netns/a' \
		ADD "$T/blind" b <<<"$(conf b 3 "8080:80")"
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	check a 2 "8080:80"
}

@test "the same from another PID namespace, with a path in /proc" {
	only_cnibox "Go lets the first one win silently"
	topology
	spawn a sleep 600
	pid=$spawned
	wait_for 5 host test -e "/proc/$pid/ns/net"
	NETNS=/proc/$pid/ns/net add a 2 "8080:80"
	printf '#!/bin/sh\nexec unshare -m -p --fork --mount-proc %s/portmap\n' "$CNI_PLUGIN_DIR" >"$T/blind"
	chmod +x "$T/blind"
	fails 102 'host port 8080/tcp is already mapped .*container "a"' ADD "$T/blind" b <<<"$(conf b 3 "8080:80")"
	check a 2 "8080:80"
}

@test "a dead container's port is taken over, also by a caller who never saw its path" {
	only_cnibox "Go lets the first one win, alive or not"
	topology
	serve b 80
	add a 2 "8080:80"
	blind b
	host ip netns del a
	NETNS=/run/netns/x ok ADD "$T/blind" b <<<"$(conf b 3 "8080:80")"
	answers x tcp 192.0.2.1 8080 "b 192.0.2.9"
}

@test "a dead container is told from a third one that has its number now" {
	only_cnibox "Go lets the first one win, alive or not"
	topology
	add a 2 "8080:80"
	host ip netns del a
	wait_for 5 host sh -c '! ip link show va'
	port c 4
	port d 5
	serve b 80
	add b 3 "8080:80"
	answers x tcp 192.0.2.1 8080 "b 192.0.2.9"
}

@test "an interface without a pair: what cannot be told is alive, what is gone is not" {
	only_cnibox "Go lets the first one win, alive or not"
	topology
	netns m
	host ip link add m0 link vx netns m type macvlan
	IFNAME=m0 add m 7 "8080:80"
	blind m
	fails 102 'whether its sandbox /run/netns/m lives cannot be told' ADD "$T/blind" b <<<"$(conf b 3 "8080:80")"
	host ip netns del m
	add b 3 "8080:80"
}

# pod NAME: what Kubernetes' runtimes say in CNI_ARGS.
pod() { echo "IgnoreUnknown=1;K8S_POD_NAMESPACE=kube-system;K8S_POD_NAME=$1;K8S_POD_INFRA_CONTAINER_ID=x;K8S_POD_UID=$RANDOM"; }

@test "the newer sandbox of a pod has its ports at once, the older one's DEL leaves them alone" {
	only_cnibox "Go lets the first one win silently"
	topology
	serve a 80
	serve b 80
	CNI_ARGS=$(pod etcd) add a 2 "8080:80 53:53/udp"
	answers x tcp 192.0.2.1 8080 "a 192.0.2.9"
	CNI_ARGS=$(pod etcd) add b 3 "8080:80 53:53/udp"
	answers x tcp 192.0.2.1 8080 "b 192.0.2.9"
	CNI_ARGS=$(pod etcd) del a 2 "8080:80 53:53/udp"
	answers x tcp 192.0.2.1 8080 "b 192.0.2.9"
	answers host tcp 127.0.0.1 8080 "b 10.22.0.1"
	CNI_ARGS=$(pod etcd) check b 3 "8080:80 53:53/udp"
	CNI_ARGS=$(pod etcd) del b 3 -
	nothing_left cni0 va vb vx
	same "route_localnet" 0 "$(localnet)"
}

@test "on links of their own: the older sandbox stays guarded until it goes" {
	only_cnibox "Go has no guard"
	topology
	veth c 10.33.0 fd33
	veth d 10.34.0 fd34
	lone() { conf "$1" 9 "8080:80" | jq --arg a "10.$2.0.9/24" '.prevResult.ips = [{address: $a, interface: 1}]'; }
	CNI_ARGS=$(pod etcd) ok ADD portmap c <<<"$(lone c 33)"
	CNI_ARGS=$(pod etcd) ok ADD portmap d <<<"$(lone d 34)"
	elements localnet | jq_is '[.nftables[1].set.elem[] | .elem.val] | sort' '["vc","vd"]'
	ok DEL portmap c <<<"$(lone c 33)"
	elements localnet | jq_is '[.nftables[1].set.elem[] | .elem.val]' '["vd"]'
	same "route_localnet of the old" 0 "$(localnet vc)"
	same "route_localnet of the new" 1 "$(localnet vd)"
	ok DEL portmap d <<<"$(lone d 34)"
	same "route_localnet of the new" 0 "$(localnet vd)"
	nothing_left cni0 va vb vx vc vd
}

@test "another pod is refused, and told whose port it is" {
	only_cnibox "Go lets the first one win silently"
	topology
	CNI_ARGS=$(pod etcd) add a 2 "8080:80"
	CNI_ARGS=$(pod etcd-2) fails 102 'container "a" \(network "net1", interface "eth0", pod "kube-system/etcd"\)' \
		ADD portmap b <<<"$(conf b 3 "8080:80")"
	fails 102 'pod "kube-system/etcd"' ADD portmap b <<<"$(conf b 3 "8080:80")"
	# A name without a namespace is no pod's, and neither is an empty one.
	CNI_ARGS='K8S_POD_NAME=etcd' fails 102 'pod "kube-system/etcd"' ADD portmap b <<<"$(conf b 3 "8080:80")"
	CNI_ARGS='K8S_POD_NAMESPACE=;K8S_POD_NAME=' add b 3 "8081:80"
	netns c
	CNI_ARGS='K8S_POD_NAMESPACE=;K8S_POD_NAME=' fails 102 'container "b"' ADD portmap c <<<"$(conf c 4 "8081:80")"
}

@test "a pod with names as long as they get" {
	only_cnibox "Go lets the first one win silently"
	topology
	serve b 80
	long=$(printf 'abcdefgh%.0s' {1..31})
	CNI_ARGS=$(pod "${long}x") add a 2 "8080:80"
	CNI_ARGS=$(pod "${long}y") fails 102 'pod "kube-system/abcdefgh' ADD portmap b <<<"$(conf b 3 "8080:80")"
	CNI_ARGS=$(pod "${long}x") add b 3 "8080:80"
	answers x tcp 192.0.2.1 8080 "b 192.0.2.9"
}

# sandbox_of_pod NUMBER: its ADD, apart from the others that run at once.
sandbox_of_pod() {
	mkdir -p "$T/$1"
	T=$T/$1
	CNI_ARGS=$(pod web) add "s$1" "$1" "8080:80"
}

@test "of many sandboxes of one pod at once each gets the port, and the last one keeps it" {
	only_cnibox "Go lets the first one win"
	topology
	for i in $(seq 10 41); do netns "s$i"; done
	for _ in 1 2 3; do
		pids=()
		for i in $(seq 10 41); do
			sandbox_of_pod "$i" 3>&- &
			pids+=($!)
		done
		for p in "${pids[@]}"; do wait "$p"; done
		same "mappings" 1 "$(count ports4)"
		for i in $(seq 10 41); do del "s$i" "$i" "8080:80"; done
		nothing_left cni0 va vb vx
	done
}
