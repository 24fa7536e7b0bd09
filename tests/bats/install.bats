# install.sh: nothing that runs is disturbed, nothing that is somebody else's is lost.

load helpers

setup() {
  T=$BATS_TEST_TMPDIR
  D=$T/bin
  BINARY=$CNIBOX_BUILD/cnibox
  only_cnibox "install.sh is ours"
}

teardown() { sandbox_end; }

# install ARG...: sets status and output.
install() { run "$CNIBOX_ROOT/install.sh" "$@"; }

# installs ARG...: the same, and it succeeds.
installs() {
  install "$@"
  [ "$status" -eq 0 ] || { echo "install.sh $*: status $status: $output" >&2 && return 1; }
}

applets() { "$BINARY" --list; }

# What a directory holds: type, mode, name, target, inode; then the contents.
state_of() {
  find "$1" -printf '%y %m %P %l %i\n' | sort
  find "$1" -type f -exec sha256sum {} + | sort
}

# A plugin of somebody else.
foreign() { # NAME [WORD]
  mkdir -p "$D"
  printf '#!/bin/sh\necho "%s %s"\n' "${2:-foreign}" "$1" >"$D/$1"
  chmod 751 "$D/$1"
}

version_of() {
  CNI_COMMAND=VERSION "$1" <<<'{"cniVersion": "1.0.0"}' | jq -c '.supportedVersions | length > 0'
}

@test "the directory gets the binary and a relative symlink for each applet, and they work" {
  local a
  installs --binary "$BINARY" "$D"
  cmp "$BINARY" "$D/cnibox"
  same "mode" 755 "$(stat -c %a "$D/cnibox")"
  for a in $(applets); do
    same "target of $a" cnibox "$(readlink "$D/$a")"
  done
  same "what is there" "$(printf '%s\n' cnibox $(applets) | sort)" "$(ls -A "$D")"
  same "bridge answers" true "$(version_of "$D/bridge")"
  same "host-local answers" true "$(version_of "$D/host-local")"
}

@test "every step is said" {
  local a
  installs --binary "$BINARY" "$D"
  for a in "making $D" "installing $D/cnibox" "linking $D/bridge -> cnibox"; do
    [[ $output == *"$a"* ]] || { echo "not said: $a; but: $output" >&2 && return 1; }
  done
}

@test "without a directory it is /opt/cni/bin" {
  sandbox
  host sh -c "mount -t tmpfs none /opt && '$CNIBOX_ROOT/install.sh' --binary '$BINARY'"
  same "link" cnibox "$(host readlink /opt/cni/bin/bridge)"
  host cmp "$BINARY" /opt/cni/bin/cnibox
}

@test "a second time it changes nothing" {
  local before
  installs --binary "$BINARY" "$D"
  before=$(state_of "$D")
  installs --binary "$BINARY" "$D"
  same "the directory" "$before" "$(state_of "$D")"
  [[ $output == *"up to date"* ]]
}

@test "another version replaces the binary while a plugin runs, which finishes undisturbed" {
  local pid
  installs --binary "$BINARY" "$D"
  mkfifo "$T/config"
  CNI_COMMAND=STATUS CNI_PATH=$D "$D/loopback" <"$T/config" >"$T/out" 2>&1 3>&- &
  pid=$!
  exec 9>"$T/config"
  wait_for 60 [ "/proc/$pid/exe" -ef "$D/cnibox" ]
  cp "$BINARY" "$T/newer"
  echo >>"$T/newer"
  run cp "$T/newer" "$D/cnibox" # this is what must not be done
  [ "$status" -ne 0 ]
  installs --binary "$T/newer" "$D"
  cmp "$T/newer" "$D/cnibox"
  echo '{"cniVersion": "1.1.0", "name": "n", "type": "loopback"}' >&9
  exec 9>&-
  wait "$pid"
  same "its output" '' "$(<"$T/out")"
  same "the new one answers" true "$(version_of "$D/loopback")"
}

@test "a foreign plugin is refused by name and nothing is changed" {
  local before
  foreign bridge
  foreign portmap
  before=$(state_of "$D")
  install --binary "$BINARY" "$D"
  same "status" 1 "$status"
  [[ $output == *bridge*portmap* ]]
  [[ $output == *--force* ]]
  same "the directory" "$before" "$(state_of "$D")"
}

@test "foreign plugins of other names are nobody's business" {
  foreign calico
  installs --binary "$BINARY" "$D"
  same "calico" "foreign calico" "$("$D/calico")"
  installs --uninstall "$D"
  same "what is there" calico "$(ls -A "$D")"
}

@test "--force replaces foreign plugins and keeps them, --uninstall puts them back" {
  local before
  foreign bridge
  foreign elsewhere
  ln -s elsewhere "$D/tuning"
  before=$(state_of "$D")
  installs --force --binary "$BINARY" "$D"
  same "bridge" true "$(version_of "$D/bridge")"
  same "tuning" true "$(version_of "$D/tuning")"
  same "kept" "foreign bridge" "$("$D/.cnibox-replaced/bridge")"
  installs --uninstall "$D"
  same "bridge" "foreign bridge" "$("$D/bridge")"
  same "tuning" "foreign elsewhere" "$("$D/tuning" | sed s/tuning/elsewhere/)"
  same "the directory" "$(sed 's/ [0-9]*$//' <<<"$before")" "$(state_of "$D" | sed 's/ [0-9]*$//')"
}

@test "a foreign cnibox is a foreign plugin too" {
  foreign cnibox
  install --binary "$BINARY" "$D"
  same "status" 1 "$status"
  installs --force --binary "$BINARY" "$D"
  cmp "$BINARY" "$D/cnibox"
  installs --uninstall "$D"
  same "cnibox" "foreign cnibox" "$("$D/cnibox")"
}

@test "forced again after the package came back: the last one is put back" {
  foreign bridge old
  installs --force --binary "$BINARY" "$D"
  rm "$D/bridge"
  foreign bridge new
  install --binary "$BINARY" "$D"
  same "status" 1 "$status"
  installs --force --binary "$BINARY" "$D"
  installs --uninstall "$D"
  same "bridge" "new bridge" "$("$D/bridge")"
}

@test "--uninstall leaves alone what somebody put there since" {
  foreign bridge old
  installs --force --binary "$BINARY" "$D"
  rm "$D/bridge"
  foreign bridge new
  installs --uninstall "$D"
  same "bridge" "new bridge" "$("$D/bridge")"
  same "kept" "old bridge" "$("$D/.cnibox-replaced/bridge")"
  [ ! -e "$D/cnibox" ]
}

@test "--uninstall where nothing is installed does nothing" {
  foreign bridge
  installs --uninstall "$D"
  [[ $output == *"no cnibox"* ]]
  same "bridge" "foreign bridge" "$("$D/bridge")"
  installs --uninstall "$T/nowhere"
}

@test "symlinks of cnibox --install into another directory are taken over" {
  mkdir "$D" "$T/lib"
  cp "$BINARY" "$T/lib/cnibox"
  "$T/lib/cnibox" --install "$D"
  same "before" ../lib/cnibox "$(readlink "$D/bridge")"
  installs --binary "$BINARY" "$D"
  same "after" cnibox "$(readlink "$D/bridge")"
}

@test "copies of the binary under the applets' names are taken over" {
  mkdir "$D"
  cp "$BINARY" "$D/bridge"
  installs --binary "$BINARY" "$D"
  same "bridge" cnibox "$(readlink "$D/bridge")"
  [ ! -e "$D/.cnibox-replaced" ]
}

@test "the links still resolve after the tree has moved" {
  mkdir -p "$T/a/b"
  D=$T/a/b/bin
  installs --binary "$BINARY" "$D"
  mv "$T/a" "$T/elsewhere"
  D=$T/elsewhere/b/bin
  same "bridge" true "$(version_of "$D/bridge")"
  [ "$D/bridge" -ef "$D/cnibox" ]
}

@test "a directory of an applet's name is refused, with --force too" {
  mkdir -p "$D/bridge"
  install --force --binary "$BINARY" "$D"
  same "status" 1 "$status"
  [[ $output == *"$D/bridge is a directory"* ]]
  same "what is there" bridge "$(ls -A "$D")"
}

@test "a plugin is never missing while it is replaced and put back" {
  local i watcher
  mkdir "$D"
  cp "$(readlink -f "$(type -P true)")" "$D/bridge" # no script: those are opened twice
  : >"$T/missing"
  (
    while [ ! -e "$T/stop" ]; do
      CNI_COMMAND=VERSION "$D/bridge" <<<'{"cniVersion": "1.0.0"}' >/dev/null 2>>"$T/missing" ||
        echo failed >>"$T/missing"
    done
  ) 3>&- &
  watcher=$!
  for i in 1 2 3 4 5; do
    installs --force --binary "$BINARY" "$D"
    installs --uninstall "$D"
  done
  touch "$T/stop"
  wait "$watcher"
  same "calls that failed" '' "$(<"$T/missing")"
}

@test "a binary that does not run is not installed" {
  echo nonsense >"$T/nonsense"
  chmod +x "$T/nonsense"
  install --binary "$T/nonsense" "$D"
  same "status" 1 "$status"
  [ ! -e "$D" ]
  install --binary "$T/none" "$D"
  same "status" 1 "$status"
  [ ! -e "$D" ]
}

@test "unknown options and a second directory are usage errors, --help is none" {
  install --nonsense
  same "status" 2 "$status"
  install "$D" "$D"
  same "status" 2 "$status"
  [ ! -e "$D" ]
  installs --help
  [[ $output == *--uninstall* ]]
}
