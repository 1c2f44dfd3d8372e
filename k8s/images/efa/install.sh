#!/usr/bin/env bash
# Runs AWS's EFA installer and writes its files and their shared libraries as a layer: install.sh LAYER.tar
# build.sh calls it in a temporary Debian 13. The installer, aws-efa-installer-VERSION.tar.gz, 1.48 or later, must be in
# k8s/images/efa. libfabric is in /opt/amazon/efa, NCCL's plug-in in /opt/amazon/ofi-nccl. MPI is Debian's: it carries
# control messages and small all-reduces over TCP, NCCL carries the gradients.
set -euo pipefail
shopt -s nullglob extglob
layer=$(realpath "$1")
cd "$(dirname "$0")"
root=$(mktemp -d)
trap 'rm -rf "$root" "$root.table"' EXIT
installers=(aws-efa-installer-*.tar.gz)
[ ${#installers[@]} = 1 ] ||
  { echo "install.sh: expected one aws-efa-installer-VERSION.tar.gz in k8s/images/efa, found ${#installers[@]}" >&2; exit 1; }
tar xzf "${installers[0]}"
(cd aws-efa-installer && DEBIAN_FRONTEND=noninteractive ./efa_installer.sh -y --skip-kmod --skip-limit-conf --no-verify)

own=(/opt/amazon/efa/lib*/*.so* /opt/amazon/ofi-nccl/lib*/*.so* "/usr/lib/$(uname -m)-linux-gnu"/libibverbs/libefa*.so
  /etc/libibverbs.d/efa.driver)
[ -n "$(find /opt/amazon/ofi-nccl -name 'libnccl-net*.so')" ] ||
  { echo "install.sh: no NCCL plug-in in /opt/amazon/ofi-nccl: expected EFA installer 1.48 or later" >&2; exit 1; }
mapfile -t files < <({ printf '%s\n' "${own[@]}"; ldd "${own[@]}" 2>/dev/null | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p'; } | sort -u)
mkdir -p "$root/usr/share/dtrain"
for file in "${files[@]}"; do
  case $file in /lib/*) file=/usr$file ;; esac
  # The layer below has the C library and the compiler's runtime libraries.
  case $file in */lib@(c|m|dl|rt|pthread|gcc_s|stdc++).so*) continue ;; esac
  printf '%s\n' "${file#/}" "$(realpath --relative-to=/ "$file")"
done | sort -u | (cd / && xargs cp -a --parents -t "$root")
mapfile -t packages < <(printf '%s\n' "${files[@]}" "${files[@]#/usr}" | xargs dpkg-query -S 2>/dev/null | sed 's/:.*//' | sort -u)
version=$(basename "${installers[0]}" .tar.gz)
sum=$(sha256sum "${installers[0]}")
echo "aws-efa-installer ${version##*-} pkg:generic/aws-efa-installer@${version##*-} ${sum%% *}" >"$root.table"
../common/bill-of-materials.sh "${version##*-}" "${packages[*]}" "$root.table" >"$root/usr/share/dtrain/sbom-efa.spdx.json"
tar -C "$root" --mode=u=rwX,go=rX --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-0}" -cf "$layer" .
