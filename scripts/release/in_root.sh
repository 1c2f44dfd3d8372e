#!/usr/bin/env bash
# Runs a command in a bare Debian root, of which nothing is kept.
#     in_root.sh SUITE [--prepare COMMAND] [--mount FROM:TO[:ro]]... COMMAND
# SUITE is a Debian release (bullseye, bookworm, trixie). COMMAND is a line for bash. --prepare runs another line first
# and keeps its result for later calls with the same line, e.g. to install packages. --mount makes a directory of this
# machine visible in the root. Needs root and debootstrap. Roots are kept in ${XDG_CACHE_HOME:-~/.cache}/dtrain/roots.
# Exit status: the command's.
set -euo pipefail
suite=${1:?SUITE} prepare='' mounts=()
shift
while [ $# -gt 1 ]; do
  case $1 in
    --prepare) prepare=$2 ;;
    --mount) mounts+=("$2") ;;
    *) echo "in_root.sh: '$1': expected --prepare or --mount" >&2; exit 1 ;;
  esac
  shift 2
done
command=${1:?COMMAND}
[ "$(id -u)" = 0 ] || { echo "in_root.sh needs root, for chroot" >&2; exit 1; }
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dtrain/roots
base=$cache/$suite
mkdir -p "$cache"

# run LAYERS UPPER COMMAND: runs a line in an overlay of the directories LAYERS, whose changes go to UPPER/changes. The
# network is this machine's. The environment is empty but for proxies.
run() {
  local proxies
  mkdir -p "$2"/{changes,work,root}
  mkdir -p "$2/changes/etc"
  cp -L /etc/resolv.conf /etc/hosts "$2/changes/etc/"
  mapfile -t proxies < <(env | grep -iE '^(https?|no|all)_proxy=' || true)
  # shellcheck disable=SC2016
  unshare --mount --propagation private bash -c '
    set -eu
    layers=$1 upper=$2 command=$3 count=$4
    shift 4
    root=$upper/root
    mount -t overlay -o "lowerdir=$layers,upperdir=$upper/changes,workdir=$upper/work" overlay "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    for ((; count > 0; --count)) do
      IFS=: read -r from to mode <<<"$1"
      shift
      mkdir -p "$root$to"
      mount --bind "$from" "$root$to"
      [ "$mode" != ro ] || mount -o remount,bind,ro "$root$to"
    done
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@" \
      chroot "$root" bash -c "$command"
  ' _ "$1" "$2" "$3" "${#mounts[@]}" "${mounts[@]}" "${proxies[@]}"
}

exec 9>"$cache/lock"
flock 9
if [ ! -e "$base/.complete" ]; then
  rm -rf "$base"
  debootstrap --variant=minbase --include=ca-certificates "$suite" "$base" >"$cache/$suite.log" 2>&1 ||
    { tail -n 5 "$cache/$suite.log" >&2; exit 1; }
  # apt, names and certificates work as on this machine.
  apt-config dump | grep '^Acquire::' >"$base/etc/apt/apt.conf.d/99host" || true
  [ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$base/etc/ssl/certs/"
  touch "$base/.complete"
fi
layers=$base
if [ -n "$prepare" ]; then
  layer=$cache/$suite-$(sha256sum <<<"$prepare" | cut -c 1-16)
  if [ ! -e "$layer/complete" ]; then
    rm -rf "$layer"
    run "$base" "$layer" "set -e; $prepare" >"$layer.log" 2>&1 || { tail -n 20 "$layer.log" >&2; exit 1; }
    touch "$layer/complete"
  fi
  layers=$layer/changes:$base
fi
flock -u 9

scratch=$(mktemp -d "$cache/run.XXXXXX")
trap 'rm -rf --one-file-system "$scratch"' EXIT
run "$layers" "$scratch" "$command"
