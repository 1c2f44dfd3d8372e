#!/usr/bin/env bash
# Creates the root file system of an image from files of this Debian system, as a reproducible layer:
#     root-filesystem.sh TREE LAYER.tar [CUDA]
# TREE has dtrain's programs in usr/bin, their libraries and licences: the output of
# `DESTDIR=TREE cmake --install build --component programs --prefix /usr`, or unpacked packages, with their entries of
# status.d, and listed in TREE/packages like the wheels in CUDA/packages. CUDA is the output of cuda-libraries.sh, whose
# files form a separate layer.
# Needs openmpi-bin, openssh-server, openssh-client, libnss-extrausers, libcurl4 and ca-certificates.
# The layer has no root password, no keys and no setuid programs. usr/share/doc has the licences of all packages,
# var/lib/dpkg/status.d their list for scanners, and usr/share/dtrain/sbom.spdx.json is the SBOM.
set -euo pipefail
shopt -s nullglob
die() {
  echo "root-filesystem.sh: $1" >&2
  exit 1
}
if [ $# -lt 2 ] || [ ! -d "$1/usr/bin" ]; then
  die "usage: root-filesystem.sh TREE LAYER.tar [CUDA], TREE with usr/bin"
fi
here=$(cd "$(dirname "$0")" && pwd)
tree=$(realpath "$1") layer=$2 cuda=${3:+$(realpath "$3")}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
system=/usr/lib/$(uname -m)-linux-gnu

# The programs load libcurl for object storage.
curl=$system/libcurl.so.4 certificates=/etc/ssl/certs/ca-certificates.crt
for file in "$curl" "$certificates"; do [ -e "$file" ] || die "file not found: $file"; done
launcher=(orterun orted) data=("$certificates" /usr/share/openmpi /etc/openmpi "$system"/pmix*/share /usr/lib/locale/C.utf8)
[ ! -e /usr/bin/prted ] || launcher=(prte prterun prted) data+=(/usr/share/prte)  # of Open MPI 5
programs=(bash dash getent hostname setsid ssh sshd mpirun mpiexec "${launcher[@]}" ompi_info
  cat chmod comm cp cut date df dirname basename du env false head id install ln ls mkdir mktemp mv nproc printenv readlink
  realpath rm rmdir seq sleep sort stat tail tee timeout touch tr true uname uniq wc grep sed find xargs tar gzip mawk)

# The files that the programs need. Open MPI and PMIx load components with dlopen; OpenSHMEM's, the bindings for Fortran
# and Java, and the second copy of PRRTE are not needed. The data files are error texts, MCA parameters and a UTF-8 locale.
binaries=("$curl" "$system"/libnss_extrausers.so.2* /usr/lib/libnss_extrausers.so.2* /usr/lib/openssh/sshd-*)
for program in "${programs[@]}"; do
  binaries+=("$(PATH=/usr/bin:/usr/sbin type -P "$program")") || die "program not found: $program"
done
mapfile -t -O ${#binaries[@]} binaries < <(find "$system"/openmpi "$system"/pmix* -name '*.so*' -not -name 'liboshmem*' \
  -not -name 'libmpi_*' -not -name 'libprrte*' \
  -not -name 'mca_spml_*' -not -name 'mca_scoll_*' -not -name 'mca_sshmem_*' -not -name 'mca_memheap_*' -not -name 'mca_atomic_*')
own=("$tree"/usr/bin/* ${cuda:+"$cuda"/lib/*})
# The driver's libcuda belongs to the node. ldd also fails for scripts.
mapfile -t libraries < <(ldd "${binaries[@]}" "${own[@]}" 2>/dev/null | grep -v 'libcuda\.so' |
  sed -n 's/^\s*\(.* => \)\?\(\/[^ :]*\) (0x.*/\2/p; s/^\s*\([^ ]*\) => not found/missing \1/p' | sort -u)
files=()
for file in "${libraries[@]}"; do
  [[ $file != missing* ]] || die "library not found: ${file#missing }"
  [[ $file == "$tree"/* ]] || [[ -n $cuda && $file == "$cuda"/* ]] || files+=("$file")
done
files+=("${binaries[@]}" /etc/os-release)
mapfile -t -O ${#files[@]} files < <(find "${data[@]}" -type f -not -name '*wrapper-data.txt' -not -path '*/rst/*')

# Copies files to their resolved paths, and links the given paths to them.
mkdir -p "$root"/{etc,proc,sys,dev,tmp,run/dtrain,var/lib/extrausers,var/lib/dpkg/status.d,usr/{bin,sbin,lib,lib64}}
for name in bin sbin lib lib64; do ln -s "usr/$name" "$root/$name"; done
mapfile -t paths < <(realpath "${files[@]}")
mapfile -t folders < <(dirname "${files[@]}" | xargs realpath)
mapfile -t copied < <(printf '%s\n' "${paths[@]}" | sort -u)
cp --parents -t "$root" "${copied[@]}"
for index in "${!files[@]}"; do
  place=${folders[index]}/${files[index]##*/} path=${paths[index]}
  if [ "$place" != "$path" ] && [ ! -e "$root$place" ]; then
    mkdir -p "$root${folders[index]}"
    ln -sr "$root$path" "$root$place"
  fi
done
# dtrain's programs, libraries and licences, without manual pages.
mkdir -p "$root"/usr/{lib/openssh,share/dtrain} "$root/etc/dtrain/ssh"
(cd "$tree" && cp -a --parents -t "$root" usr/bin/* usr/lib*/{dtrain,libdtrain*.so*} usr/lib/*/{dtrain,libdtrain*.so*} \
  usr/share/doc/*/copyright var/lib/dpkg/status.d/*)
[ -e "$root/usr/share/doc/dtrain/copyright" ] ||
  install -D -m 644 "$here/../../../LICENSE" "$root/usr/share/doc/dtrain/copyright"
install -m 755 "$here/../dtrain-pod" "$root/usr/bin/dtrain-pod"
ln -s dash "$root/usr/bin/sh"
ln -s mawk "$root/usr/bin/awk"
mv "$root/usr/sbin/sshd" "$root/usr/lib/openssh/sshd"
ln -s ../bin/dtrain-pod "$root/usr/sbin/sshd"

# Users; dtrain-pod adds the pod's user. The empty files are mount points of container runtimes.
cp -r "$here/etc/." "$root/etc/"
# OpenSSH 9.8 and later block hosts after failed logins, such as the launcher's before a pod is ready.
[ ! -e /usr/lib/openssh/sshd-session ] || echo "PerSourcePenalties no" >>"$root/etc/ssh/sshd_config"
: | tee "$root"/etc/{hosts,hostname,resolv.conf}
{
  echo "root:x:0:0:root:/run/dtrain/home:/bin/bash"
  for id in {1..499}; do echo "user$id:x:$id:$id::/run/dtrain/home:/bin/bash"; done
} >"$root/etc/passwd"
{
  echo "root:x:0:"
  for id in {1..499}; do echo "group$id:x:$id:"; done
} >"$root/etc/group"
for name in passwd group; do ln -s ../../../run/dtrain/$name "$root/var/lib/extrausers/$name"; done

# Packages of the files: dpkg knows some by their paths before the /usr merge.
mapfile -t packages < <(printf '%s\n' "${copied[@]}" "${copied[@]#/usr}" | xargs dpkg-query -S 2>/dev/null |
  sed 's/: .*//; s/:.*//' | sort -u)
packages+=(ca-certificates)  # whose file of all certificates is generated
dpkg-query -s "${packages[@]}" | awk -v folder="$root/var/lib/dpkg/status.d/" '
  /^Package: / { file = folder $2 } /^[^ ]/ { skip = /^Conffiles:/ } NF && !skip { print >file }'
declare -A licences  # by content: packages of one source have the same
for package in "${packages[@]}"; do
  licence=/usr/share/doc/$package/copyright
  [ -e "$licence" ] || continue
  sum=$(sha256sum <"$licence")
  mkdir -p "$root${licence%/*}"
  if [ -n "${licences[$sum]:-}" ]; then ln -sr "$root${licences[$sum]}" "$root$licence"; else
    install -m 644 "$licence" "$root$licence"
    licences[$sum]=$licence
  fi
done
info=$(LD_LIBRARY_PATH=${cuda:+$cuda/lib} "$tree/usr/bin/dtrain-info")
for library in ${cuda:+cuBLASLt cuDNN nvJPEG NCCL}; do
  grep -q "^$library: .* $cuda/lib/" <<<"$info" ||
    die "the programs do not use $library of the image: $(grep "^$library:" <<<"$info" || echo "they were built without CUDA")"
done
tables=()
for file in "$tree/packages" "$cuda/packages"; do [ ! -e "$file" ] || tables+=("$file"); done
"$here/bill-of-materials.sh" "$(sed -n 's/^dtrain: *//p' <<<"$info")" "${packages[*]}" "${tables[@]}" \
  >"$root/usr/share/dtrain/sbom.spdx.json"

find "$root" -type f -exec chmod u=rwX,go=rX {} + -o -type d -exec chmod u=rwx,go=rx {} +
chmod 1777 "$root/tmp" "$root/run/dtrain"
tar -C "$root" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-0}" -cf "$layer" .
echo "$layer: ${#packages[@]} packages, $(($(du -sb "$root" | cut -f 1) / 1000000)) MB"
