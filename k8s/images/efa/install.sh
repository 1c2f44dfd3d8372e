#!/usr/bin/env bash
# install.sh ROOT: runs AWS's EFA installer and copies its files and their shared libraries to ROOT.
set -euo pipefail
root=$1
cd "$(dirname "$0")"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends ca-certificates kmod pciutils
tar xzf aws-efa-installer-*.tar.gz
(cd aws-efa-installer && ./efa_installer.sh -y --skip-kmod --skip-limit-conf --no-verify)

shopt -s nullglob extglob
own=(/opt/amazon/efa/lib*/*.so* /opt/amazon/ofi-nccl/lib*/*.so* "/usr/lib/$(uname -m)-linux-gnu"/libibverbs/libefa*.so
  /etc/libibverbs.d/efa.driver)
[ -n "$(find /opt/amazon/ofi-nccl -name 'libnccl-net*.so')" ] ||
  { echo "install.sh: no NCCL plug-in in /opt/amazon/ofi-nccl: expected EFA installer 1.48 or later" >&2; exit 1; }
mapfile -t files < <({ printf '%s\n' "${own[@]}"; ldd "${own[@]}" 2>/dev/null | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p'; } | sort -u)
mkdir -p "$root/usr/lib" "$root/usr/share/dtrain"
for file in "${files[@]}"; do
  case $file in /lib/*) file=/usr$file ;; esac
  # The base image has the C library and the compiler's runtime libraries.
  case $file in */lib@(c|m|dl|rt|pthread|gcc_s|stdc++).so*) continue ;; esac
  cp -a --parents "$file" "$(realpath "$file")" "$root"
done
mapfile -t packages < <(printf '%s\n' "${files[@]}" "${files[@]#/usr}" | xargs dpkg-query -S 2>/dev/null | sed 's/:.*//' | sort -u)
version=$(basename aws-efa-installer-*.tar.gz .tar.gz)
../common/bill-of-materials.sh "${version##*-}" /nowhere "${packages[@]}" >"$root/usr/share/dtrain/sbom-efa.spdx.json"
