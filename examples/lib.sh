# What the examples share; sourced. Expects $wrong and $pids to be set.

title() { printf '\n%s\n' "$*"; }
say() { printf '   %s\n' "$*"; }
indent() { sed 's/^/        /'; }

# expect WHAT EXPECTED ACTUAL
expect() {
  if [ "$2" = "$3" ]; then
    printf '   ok   %s: %s\n' "$1" "${3:-none}"
  else
    printf '   WRONG %s: %s\n         expected: %s\n' "$1" "${3:-none}" "${2:-none}"
    wrong=$((wrong + 1))
  fi
}

# serve NAME PREFIX...: a server that answers on TCP port 80 with NAME and the address of who asks,
# started by the command PREFIX, which must become it, for the process to be ended by its number.
serve() {
  name=$1
  shift
  "$@" socat TCP4-LISTEN:80,fork,reuseaddr SYSTEM:"echo $name sees \$SOCAT_PEERADDR" &
  pids="$pids $!"
}

# The words of that server, or nothing after two seconds.
ask() { timeout 2 socat -u "TCP4:$1,connect-timeout=2" - 2>/dev/null || :; }

# patiently CMD...: until it prints something, at most five seconds.
patiently() {
  tries=0
  until said=$("$@") && [ -n "$said" ] || [ $tries -ge 50 ]; do
    tries=$((tries + 1))
    sleep 0.1
  done
  printf '%s\n' "$said"
}

links_of() { ip -n "$1" -j link | jq -r '[.[].ifname] | join(" ")'; }
address_of() { ip -n "$1" -j -4 address show "$2" | jq -r '.[0].addr_info[0].local // empty'; }

verdict() {
  if [ "$wrong" != 0 ]; then
    title "$wrong WRONG"
    exit 1
  fi
  title "All as it should be."
}
