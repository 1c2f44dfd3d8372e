#!/usr/bin/env bash
# Tests packages and archives on the minimal Debian that they were built for, as a new user installs them.
#   scripts/try_packages.sh PACKAGES ROOT   in the chroot ROOT, e.g. of `debootstrap --variant=minbase trixie`
#   scripts/try_packages.sh PACKAGES        on this system, if it is minimal
# PACKAGES is a folder with dtrain-*.tar.gz, or the .deb files of scripts/release/debian_packages.sh, or both. Archives
# are tested first, before any library is installed. If PACKAGES/previous has the .deb files of an earlier version, these
# are installed first, and upgraded. Needs root and apt sources. Prints what was tested at the end, and stops at the
# first failure.
set -euo pipefail
shopt -s nullglob
packages=$(realpath "${1:?expected: try_packages.sh PACKAGES [ROOT]}")
root=${2:-}
here=$(cd "$(dirname "$0")/.." && pwd)
[ "$(id -u)" = 0 ] || { echo "try_packages.sh needs root"; exit 1; }

if [ -n "$root" ]; then
  [ -x "$root/usr/bin/apt-get" ] || { echo "$root is not a Debian system: debootstrap --variant=minbase trixie $root"; exit 1; }
  mkdir -p "$root/try/scripts" "$root/try/packages"
  cp "$here/scripts/try_packages.sh" "$root/try/scripts/"
  cp -r "$packages"/*.deb "$packages"/*.tar.gz "$packages"/previous* "$root/try/packages/"
  # A private mount namespace: mounts disappear when the command exits.
  exec unshare -m --propagation private bash -c '
    mount -t proc proc "$1/proc"
    mount --rbind /sys "$1/sys"
    mount --rbind /dev "$1/dev"
    exec env -u LD_LIBRARY_PATH PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
      chroot "$1" bash /try/scripts/try_packages.sh /try/packages' _ "$root"
fi

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
trap 'echo "FAILED: $BASH_COMMAND"; tail -n 20 "$place"/*.log' ERR
tried=()

# Runs the programs of the folder `bin`.
use() {
  local bin=$1 records=$place/records
  rm -rf "$records"
  "$bin/dtrain-info" >"$place/info.log"
  "$bin/dtrain-data" synthesize --output "$records" --classes 9 --image_size 32 --train 48 --validation 12 --shards 1 \
    --seed 1 >"$place/synthesize.log" 2>&1
  "$bin/dtrain-data" verify "$records" >"$place/verify.log" 2>&1
  "$bin/dtrain-cnn-benchmarks" --device=cpu --data_name=imagenet --data_dir="$records" --model=resnet18_v1.5 \
    --image_size=32 --num_classes=10 --batch_size=4 --num_batches=10 --num_warmup_batches=0 --display_every=5 \
    >"$place/training.log" 2>&1
  grep -q '^total images/sec' "$place/training.log"
}

# Checks the bash completion in `file`: its only suggestion for `line` is `expected`.
completes() {
  local file=$1 line=$2 expected=$3
  bash -c 'source "$1"; COMP_LINE=$2 COMP_POINT=${#2}; read -ra COMP_WORDS <<<"$2"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _dtrain; [ "${COMPREPLY[*]}" = "$3" ]' _ "$file" "$line" "$expected"
}

install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >>"$place/apt.log" 2>&1; }

apt-get update -q >"$place/apt.log" 2>&1
for archive in "$packages"/*.tar.gz; do
  mkdir "$place/unpacked"
  tar xzf "$archive" -C "$place/unpacked" --strip-components=1
  bin=$place/unpacked/bin
  # ldd fails on scripts.
  needed=$({ ldd "$bin"/* 2>/dev/null || true; } | grep -v "$place/unpacked" |
    sed -n 's/^\s*\(lib[^ ]*\.so[^ ]*\) .*/\1/p' | sort -u | paste -sd ' ')
  echo "$(basename "$archive") uses libraries of the system: $needed"
  if ldd "$bin/dtrain-info" | grep -q 'libmpi.*not found'; then
    echo "It needs Open MPI, which archives do not contain (the preset portable builds without it): installing Open MPI"
    install openmpi-bin
  fi
  use "$bin"
  PATH=$bin:$PATH completes "$place/unpacked/share/bash-completion/completions/dtrain-data" "dtrain-data synthesize --max" --max_image_size
  tried+=("$(basename "$archive")")
done

current=("$packages"/*.deb) previous=("$packages"/previous/*.deb)
if [ ${#current[@]} != 0 ]; then
  install man-db bash-completion
  if [ ${#previous[@]} != 0 ]; then
    install "${previous[@]}"
    dtrain-info --version
  fi
  install "${current[@]}"
  mapfile -t names < <(for package in "${current[@]}"; do dpkg-deb -f "$package" Package; done)
  [ -z "$(dpkg --verify "${names[@]}")" ]  # every file is the file of its package
  [ -z "$(dpkg --audit)" ]
  use /usr/bin
  for page in dtrain-info dtrain-data dtrain-data-synthesize; do
    MANPAGER=cat man "$page" | grep -q '^NAME'
  done
  completes /usr/share/bash-completion/completions/dtrain-data "dtrain-data ver" verify

  install cmake make
  cmake -S /usr/share/doc/dtrain/examples -B "$place/examples" -DCMAKE_BUILD_TYPE=Release >"$place/cmake.log"
  cmake --build "$place/examples" -j "$(nproc)" >"$place/build.log" 2>&1
  "$place/examples/custom_op" >"$place/custom_op.log"

  install lintian
  lintian --fail-on error "${current[@]}" >"$place/lintian.log" 2>&1
  tried+=("${current[@]##*/}")
  [ ${#previous[@]} = 0 ] || tried+=("upgrade of ${previous[@]##*/}")
fi
[ ${#tried[@]} != 0 ] || { echo "There are no packages in $packages"; exit 1; }
echo "tested: ${tried[*]}"
