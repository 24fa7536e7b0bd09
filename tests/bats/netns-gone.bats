# DEL where the namespace is gone, in whatever way: nothing is left, and it is no error.

load helpers
load cnitool

setup() { sandbox && tool_setup; }
teardown() { sandbox_end; }

@test "DEL of every plugin where the path leads to no namespace" {
	local p path version long longer
	only_cnibox "a file that is no namespace, left by a mount that is gone, fails the Go plugins' DEL"
	host sh -c 'touch /run/file && mkdir /run/dir && ln -s /nowhere /run/dangling && mkfifo /run/fifo && ln -s loop /run/loop'
	spawn host socat UNIX-LISTEN:/run/socket,fork -
	wait_for 60 host test -S /run/socket
	long=/run/$(printf '%0300d' 1) longer=/$(printf '%02500d' 1)
	for p in bridge ptp dummy host-local portmap tuning bandwidth loopback; do
		for path in '' /run/none /run/file /run/file/x /run/dir /run/dangling /run/fifo /dev/null /proc/999999/ns/net \
			/proc/self/ns/mnt /run/loop /run/loop/x "$long" "${longer//0//x}" /run/socket; do
			for version in 0.4.0 1.1.0; do
				NETNS=$path ok DEL $p c1 <<<"{\"cniVersion\":\"$version\",\"name\":\"net\",\"type\":\"$p\",
					\"ipam\":{\"type\":\"host-local\",\"subnet\":\"10.9.0.0/24\"}}"
			done
		done
	done
	nothing_left
}

# The Go plugins' DEL forgets the masquerade rules when the namespace is gone.
@test "DEL after the Go plugins found the namespace gone: their rules go, with a result and without" {
	local results how
	only_cnibox "these are the plugins that forget them"
	need_applet bridge host-local
	go_plugin bridge
	list n '{"type":"bridge","bridge":"br0","isGateway":true,"ipMasq":true,"ipam":{"type":"host-local","subnet":"10.9.0.0/24"}}'
	for how in with without; do
		netns c1
		CNI_PATH=${GO_PLUGIN%/*} works add n /run/netns/c1
		results=$(host sh -c 'tar -C /var/lib/cni -cf - results | base64 -w0')
		host ip netns del c1
		CNI_PATH=${GO_PLUGIN%/*} works del n /run/netns/c1
		host iptables-save -t nat | grep -q MASQUERADE
		[ $how = without ] || host sh -c "echo $results | base64 -d | tar -C /var/lib/cni -xf -"
		works del n /run/netns/c1
		same "rules, $how a result" '' "$(host iptables-save -t nat | grep MASQUERADE)"
		no_entry
	done
}
