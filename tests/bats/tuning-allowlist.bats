# tuning's allowlist: expressions mean what they mean to the Go plugin, or are refused by name.

load helpers

setup() {
	need_applet tuning
	sandbox
	netns c1
	host ip link add veth0 type veth peer name eth0 netns c1
}
teardown() { sandbox_end; }

# config NAME VALUE...: a config with these sysctls.
config() {
	jq -n '{cniVersion: "1.0.0", name: "net1", type: "tuning",
		sysctl: ([$ARGS.positional | _nwise(2) | {(.[0]): .[1]}] | add),
		prevResult: {cniVersion: "1.0.0", interfaces: [{name: "eth0", sandbox: "/run/netns/c1"}]}}' --args "$@"
}

allow() {
	host mkdir -p /etc/cni/tuning
	host tee /etc/cni/tuning/allowlist.conf >/dev/null
}

# Debian's Go plugin has no allowlist; newer ones do, and hold the same.
has_allowlist() {
	allow </dev/null
	cni ADD tuning c1 <<<"$(config net.core.somaxconn 100)"
	[ "$status" -ne 0 ] || skip "this plugin has no allowlist"
}

@test "what expressions allow" {
	local yes no
	has_allowlist
	yes=('net.core' '^net\.core\.soma\w+$' '\Anet[.]core[.][a-z]+\z' 'somaxconn$' '(?:foo|core)\.' 'a||b' '()'
		'^net\.\w*?\.so' 'soma(x){1}conn' '^[[:lower:].]+$' '^[^\d\s]+$' 'net\x2ecore' '^(\w+\.?){3}$' '^\D+$'
		'[]x]conn' '^[a-z.-]+$' 'core.somaxconn|nothing')
	no=('^core' 'somaxcon$' '^net\.core$' 'Net' 'x{2}' 'x{,1}' '\d' '[^a-z.]' '^[\w]+$' 'net\.ipv4' 'core\\.soma'
		'^net\.core\.somaxconn.$' '[[:upper:]]' '\s' 'net\ncore' '\z\A')
	for re in "${yes[@]}"; do
		allow <<<"$re"
		ok ADD tuning c1 <<<"$(config net.core.somaxconn 101)" || show "$re should allow it"
	done
	for re in "${no[@]}"; do
		allow <<<"$re"
		fails 7 'Sysctl net.core.somaxconn is not allowed' ADD tuning c1 \
			<<<"$(config net.core.somaxconn 102)" || show "$re should not allow it"
	done
}

@test "a broken expression is an error, but not behind one that allows" {
	local re
	has_allowlist
	for re in 'a**' '*a' 'a(' 'a)' '[a' '[z-a]' 'a{2,1}' '\q' '\Z' '(?=a)' '[[:foo:]]' '(a{20}){51}' '\'; do
		allow <<<"$re"
		fails 7 '.' ADD tuning c1 <<<"$(config net.core.somaxconn 101)"
		[[ $output != *'not allowed'* ]] || show "$re should be an error of its own"
		allow <<-END
			core
			$re
		END
		ok ADD tuning c1 <<<"$(config net.core.somaxconn 101)"
	done
}

@test "what the C library cannot do is refused by name" {
	only_cnibox "Go's package knows these"
	local what
	while read -r re what; do
		allow <<<"$re"
		fails 7 "invalid regular expression.*$what.*not supported" ADD tuning c1 \
			<<<"$(config net.core.somaxconn 101)"
		[[ $(jq -r .details <<<"$output") == *"\`"* ]] || show "the part should be named"
	done <<-'END'
		(?i)NET flags
		(?P<n>net) named groups
		\bnet word boundaries
		\Qnet\E quoting
		\pL Unicode classes
		é ASCII
		n{256} 255
		(^|x)?net anchor
	END
	fails 7 'flags' STATUS tuning - <<<"$(allow <<<'(?i)x' && config net.core.somaxconn 1 | jq '.cniVersion = "1.1.0"')"
}

@test "names that are not ASCII count characters, not bytes" {
	has_allowlist
	# There is no such sysctl: what is allowed fails later, and otherwise.
	allow <<<'^net\.ipv4\.conf\.d.sn\.x$'
	fails any '.' ADD tuning c1 <<<"$(config net.ipv4.conf.døsn.x 1)"
	[[ $output != *'not allowed'* ]] || show "one character should match"
	fails 7 'not allowed' ADD tuning c1 <<<"$(config net.ipv4.conf.døøsn.x 1)"
}
