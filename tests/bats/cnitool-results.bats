# cnitool and results of plugins that are not quite as the specification wants them, yet common.

load helpers
load cnitool

setup() { sandbox && tool_setup; }
teardown() { sandbox_end; }

# The Go plugins pass such an index through as it is.
@test "an address whose interface index names no interface is passed on, cached and given to DEL" {
	local index
	double a b
	list n 'a b'
	for index in -1 7; do
		printf '{"cniVersion":"1.0.0","interfaces":[{"name":"a"}],"ips":[{"interface":%s,"address":"10.1.0.2/16"}]}' \
			$index | tee "$T/a.result" >"$T/b.result"
		works add n /x
		is '.ips[0].interface' $index
		given b ADD '.prevResult.ips[0].interface' $index
		works check n /x
		given a CHECK '.prevResult.ips[0].interface' $index
		works del n /x
		given a DEL '.prevResult.ips[0].interface' $index
		called 'ADD a,ADD b,CHECK a,CHECK b,DEL b,DEL a'
		no_entry
	done
}

@test "a result that is refused: the DELs get the one before it" {
	only_ours "libcni leaves that to its caller"
	double a b
	list n 'a b'
	printf '{"ips":[null]}' >"$T/b.result"
	tool add n /x
	same status 1 "$status"
	called 'ADD a,ADD b,DEL b,DEL a'
	given b DEL .prevResult.interfaces '[{"name":"a"}]'
	given a DEL .prevResult.interfaces '[{"name":"a"}]'
	no_entry
}
