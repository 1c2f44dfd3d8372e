#!/usr/bin/env bash
# Tries the packages that cpack has made, as somebody would who has nothing else of dtrain:
#   scripts/try_packages.sh PACKAGES ROOT   inside ROOT, a bare Debian 12 as by `debootstrap --variant=minbase bookworm`
#   scripts/try_packages.sh PACKAGES        on this system, where that is one
# PACKAGES is a folder with dtrain_*.deb, libdtrain-dev_*.deb and dtrain-*.tar.gz, of which those that are there are tried;
# the archive first, before any library is installed. Needs root, and package sources for apt. The last line says what
# was tried; the first fault ends it.
set -euo pipefail
shopt -s nullglob
packages=$(realpath "${1:?see the head of this script}")
root=${2:-}
here=$(cd "$(dirname "$0")/.." && pwd)
[ "$(id -u)" = 0 ] || { echo "This needs root."; exit 1; }

if [ -n "$root" ]; then
  [ -x "$root/usr/bin/apt-get" ] || { echo "$root is no Debian system: debootstrap --variant=minbase bookworm $root"; exit 1; }
  mkdir -p "$root/try/scripts" "$root/try/packages"
  cp "$here/scripts/try_packages.sh" "$root/try/scripts/"
  cp -r "$here/examples" "$root/try/"
  cp "$packages"/*.deb "$packages"/*.tar.gz "$root/try/packages/"
  # What is mounted in a mount namespace of its own is gone when the command ends.
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

# What bash offers after the words of a line, by the completion in `file`.
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
  # ldd fails on what is a script.
  needed=$({ ldd "$bin"/* 2>/dev/null || true; } | grep -v "$place/unpacked" |
    sed -n 's/^\s*\(lib[^ ]*\.so[^ ]*\) .*/\1/p' | sort -u | paste -sd ' ')
  echo "$(basename "$archive") takes from the system: $needed"
  if ldd "$bin/dtrain-info" | grep -q 'libmpi.*not found'; then
    echo "It was built with Open MPI, which it does not bring (the preset portable makes one without): installing it"
    install libopenmpi3
  fi
  use "$bin"
  PATH=$bin:$PATH completes "$place/unpacked/share/bash-completion/completions/dtrain-data" "dtrain-data synthesize --max" --max_image_size
  tried+=("$(basename "$archive")")
done

install man-db bash-completion
for package in "$packages"/dtrain_*.deb; do
  install "$package"
  use /usr/bin
  for page in dtrain-info dtrain-data dtrain-data-synthesize; do
    MANPAGER=cat man "$page" | grep -q '^NAME'
  done
  completes /usr/share/bash-completion/completions/dtrain-data "dtrain-data ver" verify
  tried+=("$(basename "$package")")
done

for package in "$packages"/libdtrain-dev_*.deb; do
  install cmake make "$package"
  cmake -S "$here/examples" -B "$place/examples" -DCMAKE_BUILD_TYPE=Release >"$place/cmake.log"
  cmake --build "$place/examples" -j "$(nproc)" >"$place/build.log" 2>&1
  "$place/examples/custom_op" >"$place/custom_op.log"
  tried+=("$(basename "$package")")
done
[ ${#tried[@]} != 0 ] || { echo "There are no packages in $packages"; exit 1; }
echo "tried: ${tried[*]}"
