#!/bin/sh
# Builds and installs cnibox, the CNI plugins in one binary.
#
#   ./install.sh [OPTION]... [DIR]      install into DIR (default /opt/cni/bin)
#   ./install.sh --uninstall [DIR]      remove it again, put back what it replaced
#   ./install.sh --demo                 build, then show the main job; installs nothing into DIR
#
#   --binary FILE   take this binary instead of building one
#   --force         replace other plugins of the same names; they are kept in
#                   DIR/.cnibox-replaced, from where --uninstall puts them back
#   --help          this
#
# DIR gets the binary as DIR/cnibox and for each applet a relative symlink to it. Every file appears
# whole, by rename: a plugin that is running, or called at this moment, is never disturbed. A plugin
# that is somebody else's is not touched without --force; the check comes before any change.
#
# As root, missing packages are installed (Debian, Alpine, Fedora and their kin): a compiler and
# libraries for building, a few network tools for the demo.
set -eu

root=$(cd "$(dirname "$0")" && pwd)
build=$root/build-install
dir='' binary='' force='' what=install

usage() {
  sed -n '2,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//;p;}' "$0"
  exit "$1"
}

step() { printf '%s\n' "* $*"; }
fail() {
  printf 'install.sh: %s\n' "$*" >&2
  exit 1
}

while [ $# -gt 0 ]; do
  case $1 in
    --binary)
      [ $# -gt 1 ] || usage 2 >&2
      binary=$2
      shift
      ;;
    --force) force=1 ;;
    --uninstall) what=uninstall ;;
    --demo) what=demo ;;
    -h | --help) usage 0 ;;
    -*) usage 2 >&2 ;;
    *)
      [ -z "$dir" ] || usage 2 >&2
      dir=$1
      ;;
  esac
  shift
done
: "${dir:=/opt/cni/bin}"

# ---- packages ----

# One word for the package manager, or nothing.
packager() {
  for tool in apt-get apk dnf; do
    ! command -v $tool >/dev/null 2>&1 || { echo $tool && return; }
  done
}

# packages_for build|run|demo: what is needed, by the names of this system.
packages_for() {
  case $(packager)-$1 in
    apt-get-build) echo gcc libc6-dev meson ninja-build pkg-config libmnl-dev libjansson-dev libmd-dev ;;
    apt-get-run) echo libmnl0 libjansson4 libnftables1 ;;
    apt-get-demo) echo mount iproute2 nftables iputils-ping curl socat jq util-linux ;;
    apk-build) echo gcc musl-dev linux-headers meson samurai pkgconf libmnl-dev jansson-dev libmd-dev ;;
    apk-run) echo libmnl jansson nftables ;;
    apk-demo) echo iproute2 nftables iputils curl socat jq util-linux ;;
    dnf-build) echo gcc meson ninja-build pkgconf-pkg-config libmnl-devel jansson-devel libmd-devel ;;
    dnf-run) echo libmnl jansson nftables-libs ;;
    dnf-demo) echo iproute iproute-tc nftables iputils curl socat jq util-linux ;;
  esac
}

have_package() {
  case $(packager) in
    apt-get) [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ;;
    apk) apk info -e "$1" >/dev/null 2>&1 ;;
    dnf) rpm -q "$1" >/dev/null 2>&1 ;;
  esac
}

# packages GROUP...: installs those that are missing.
packages() {
  missing=
  for group; do
    for package in $(packages_for "$group"); do
      have_package "$package" || missing="$missing $package"
    done
  done
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    step "packages that seem to be missing (not root, so not installed):$missing"
    return 0
  fi
  step "installing packages:$missing"
  # shellcheck disable=SC2086 # a list
  case $(packager) in
    apt-get)
      export DEBIAN_FRONTEND=noninteractive
      apt-get install -qq -y --no-install-recommends $missing >/dev/null 2>&1 ||
        { apt-get update -qq && apt-get install -qq -y --no-install-recommends $missing >/dev/null; }
      ;;
    apk) apk add -q $missing ;;
    dnf) dnf install -q -y --setopt=install_weak_deps=False $missing ;;
  esac || fail "the packages could not be installed"
}

# ---- the binary ----

# Sets binary to one that runs here.
make_binary() {
  if [ -n "$binary" ]; then
    [ -f "$binary" ] || fail "$binary: no such file"
    "$binary" --version >/dev/null 2>&1 || packages run
  else
    packages build run
    for tool in meson ninja; do
      command -v $tool >/dev/null 2>&1 || fail "$tool is needed to build, or --binary FILE"
    done
    step "building in $build"
    mkdir -p "$build"
    {
      if [ -e "$build/build.ninja" ]; then
        meson setup --reconfigure "$build" "$root" -Dtests=false
      else
        meson setup "$build" "$root" -Dtests=false
      fi && ninja -C "$build" cnibox
    } >"$build/log" 2>&1 || { tail -n 30 "$build/log" >&2 && fail "the build failed, see $build/log"; }
    binary=$build/cnibox
    if command -v strip >/dev/null 2>&1; then
      strip -o "$build/cnibox.stripped" "$binary"
      binary=$build/cnibox.stripped
    fi
  fi
  applets=$("$binary" --list) || fail "$binary does not run here"
  [ -n "$applets" ] || fail "$binary has no applets"
  step "$("$binary" --version), $(($(wc -c <"$binary") / 1024)) KB: $(echo "$applets" | tr '\n' ' ')"
}

# ---- installing ----

exists() { [ -e "$1" ] || [ -L "$1" ]; }

# What cnibox left at a name: a symlink to a cnibox, or the binary itself, under any of its names.
is_ours() {
  if [ -L "$1" ]; then
    target=$(readlink "$1")
    [ "${target##*/}" = cnibox ]
  else
    [ -f "$1" ] && grep -q 'CNI plugins in one binary' "$1" 2>/dev/null
  fi
}

# Renames never go into a directory, whatever stands there.
is_directory() { [ -d "$1" ] && ! is_ours "$1"; }

kept=.cnibox-replaced
new=.cnibox-new.$$
trap 'rm -f "$dir/$new"' EXIT
trap 'exit 1' INT TERM HUP

# keep NAME: a second name for what stands there, before something else is renamed over it.
keep() {
  step "keeping the present $1 as $kept/$1"
  mkdir -p "$dir/$kept"
  rm -f "$dir/$kept/$1"
  if [ -L "$dir/$1" ]; then
    cp -P "$dir/$1" "$dir/$kept/$1"
  else
    ln "$dir/$1" "$dir/$kept/$1" 2>/dev/null || cp -p "$dir/$1" "$dir/$kept/$1"
  fi
}

install_binary() {
  if exists "$dir/cnibox" && [ ! -L "$dir/cnibox" ] && cmp -s "$binary" "$dir/cnibox"; then
    step "$dir/cnibox is up to date"
    return
  fi
  step "installing $dir/cnibox"
  rm -f "$dir/$new"
  cp "$binary" "$dir/$new"
  chmod 755 "$dir/$new"
  sync "$dir/$new" 2>/dev/null || sync
  mv -f "$dir/$new" "$dir/cnibox"
}

install_link() {
  if [ -L "$dir/$1" ] && [ "$(readlink "$dir/$1")" = cnibox ]; then
    return
  fi
  step "linking $dir/$1 -> cnibox"
  rm -f "$dir/$new"
  ln -s cnibox "$dir/$new"
  mv -f "$dir/$new" "$dir/$1"
}

do_install() {
  make_binary
  foreign=
  for name in cnibox $applets; do
    ! is_directory "$dir/$name" || fail "$dir/$name is a directory"
    ! exists "$dir/$name" || is_ours "$dir/$name" || foreign="$foreign $name"
  done
  if [ -n "$foreign" ] && [ -z "$force" ]; then
    fail "in $dir there are other plugins of these names:$foreign; nothing was changed (--force" \
      "replaces them and keeps them for --uninstall)"
  fi
  if [ ! -d "$dir" ]; then
    step "making $dir"
    mkdir -p "$dir"
  fi
  for name in $foreign; do
    keep "$name"
  done
  install_binary
  for name in $applets; do
    install_link "$name"
  done
  step "done: $dir"
}

# ---- uninstalling ----

do_uninstall() {
  found=
  for path in "$dir"/*; do
    name=${path##*/}
    if [ ! -L "$path" ] || [ "$(readlink "$path")" != cnibox ]; then
      continue
    fi
    found=1
    if exists "$dir/$kept/$name"; then
      step "putting back $path"
      mv -f "$dir/$kept/$name" "$path"
    else
      step "removing $path"
      rm -f "$path"
    fi
  done
  if exists "$dir/cnibox" && is_ours "$dir/cnibox"; then
    found=1
    step "removing $dir/cnibox"
    rm -f "$dir/cnibox"
  fi
  for path in "$dir/$kept"/*; do
    exists "$path" || continue
    name=${path##*/}
    if exists "$dir/$name"; then
      step "$path stays: somebody else has put a $name into $dir since"
    else
      step "putting back $dir/$name"
      mv "$path" "$dir/$name"
    fi
  done
  if [ -d "$dir/$kept" ]; then
    rmdir "$dir/$kept" 2>/dev/null || :
  fi
  [ -n "$found" ] || step "no cnibox in $dir"
}

# ---- the demo ----

# What the demo must not change.
host_state() {
  ip -o link show | sed 's/state.*//'
  ip -o address show
  ip route show table all
  nft list ruleset
} 2>/dev/null

do_demo() {
  [ "$(id -u)" = 0 ] || fail "the demo needs root, for network namespaces: sudo $0 --demo"
  packages demo
  make_binary
  tmp=$(mktemp -d)
  trap 'rm -rf "$tmp"' EXIT
  cp "$binary" "$tmp/cnibox"
  "$tmp/cnibox" --install "$tmp"
  host_state >"$tmp/before"
  "$root/examples/demo" "$tmp" || fail "the demo did not go as it should"
  host_state >"$tmp/after"
  cmp -s "$tmp/before" "$tmp/after" ||
    step "note: links, addresses or rules of this machine have changed meanwhile, not by the demo"
}

case $what in
  install) do_install ;;
  uninstall) do_uninstall ;;
  demo) do_demo ;;
esac
