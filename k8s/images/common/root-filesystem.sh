#!/usr/bin/env bash
# Creates the minimal root file system of an image from files of this Debian system.
#     root-filesystem.sh TREE ROOT [LIBRARY...]
# TREE is the output of `DESTDIR=TREE cmake --install build --component programs --prefix /usr`; ROOT is recreated.
# LIBRARY is a library that the programs load with dlopen; its dependencies are copied, too. TREE/packages lists
# libraries that belong to no package of this system, one "NAME VERSION" per line. Needs openmpi-bin, openssh-server,
# openssh-client and libnss-extrausers.
# ROOT has no root password, no keys and no setuid programs. usr/share/doc has the licences of all packages,
# var/lib/dpkg/status.d their list for scanners, and usr/share/dtrain/sbom.spdx.json is the SBOM.
set -euo pipefail
shopt -s nullglob
if [ $# -lt 2 ] || [ ! -d "$1/usr/bin" ]; then
  echo "usage: root-filesystem.sh TREE ROOT [LIBRARY...], TREE with usr/bin" >&2
  exit 1
fi
here=$(cd "$(dirname "$0")" && pwd)
tree=$(realpath "$1")
rm -rf "$2"
mkdir -p "$2"
root=$(realpath "$2")
shift 2
libraries=("$@")
system=/usr/lib/$(uname -m)-linux-gnu

launcher=(orterun orted) launcher_data=()  # of Open MPI 4
[ ! -e /usr/bin/prted ] || launcher=(prte prterun prted) launcher_data=(/usr/share/prte)  # of Open MPI 5
programs=(bash dash getent hostname setsid ssh mpirun mpiexec "${launcher[@]}" ompi_info
  cat chmod comm cp cut date df dirname basename du env false head id install ln ls mkdir mktemp mv nproc printenv readlink
  realpath rm rmdir seq sleep sort stat tail tee timeout touch tr true uname uniq wc grep sed find xargs tar gzip mawk)

copied=()  # files of this system
# Copies a file without setuid and setgid to its resolved path, and links the given path to it.
copy() {
  local real place
  real=$(realpath "$1")
  place=$(realpath "$(dirname "$1")")/${1##*/}
  if [ ! -e "$root$real" ]; then
    mkdir -p "$root${real%/*}"
    cp "$real" "$root$real"
    chmod u-s,g-s,go-w,a+rX "$root$real"
    copied+=("$real")
  fi
  if [ "$place" != "$real" ] && [ ! -e "$root$place" ]; then
    mkdir -p "$root${place%/*}"
    ln -sr "$root$real" "$root$place"
  fi
}
# Lists the shared libraries of programs and libraries.
closure() {
  ldd "$@" 2>/dev/null | sed -n 's/^\s*\(.* => \)\?\(\/[^ :]*\) (0x.*/\2/p; s/^\s*\([^ ]*\) => not found/missing \1/p' | sort -u
}
copy_with_closure() {
  local file
  for file; do copy "$file"; done
  while read -r file; do
    [[ $file != missing* ]] || { echo "root-filesystem.sh: library not found: ${file#missing }" >&2; exit 1; }
    copy "$file"
  done < <(closure "$@")
}

mkdir -p "$root"/{etc,proc,sys,dev,tmp,run/dtrain,var/lib/extrausers,var/lib/dpkg/status.d,usr/{bin,sbin,lib,lib64}}
# Mount points of container runtimes.
: | tee "$root"/etc/{hosts,hostname,resolv.conf}
mkdir -p "$root"/usr/{lib/openssh,share/dtrain,share/doc/dtrain} "$root/etc/dtrain/ssh"
for name in bin sbin lib lib64; do ln -s "usr/$name" "$root/$name"; done
chmod 1777 "$root/tmp" "$root/run/dtrain"

# dtrain's programs, without manual pages.
cp "$tree"/usr/bin/* "$root/usr/bin/"
for file in "$tree"/usr/lib*/{dtrain,libdtrain_*} "$tree"/usr/lib/*/{dtrain,libdtrain_*}; do
  mkdir -p "$root$(dirname "${file#"$tree"}")"
  cp -a "$file" "$root${file#"$tree"}"
done
while read -r file; do
  [[ $file != missing* ]] || { echo "root-filesystem.sh: library not found: ${file#missing }" >&2; exit 1; }
  [[ $file == "$tree"/* ]] || copy "$file"
done < <(closure "$tree"/usr/bin/*)

for program in "${programs[@]}"; do
  file=$(PATH=/usr/bin:/usr/sbin type -P "$program") ||
    { echo "root-filesystem.sh: program not found: $program" >&2; exit 1; }
  copy_with_closure "$file"
done
ln -s dash "$root/usr/bin/sh"
ln -s mawk "$root/usr/bin/awk"
copy_with_closure /usr/sbin/sshd
mv "$root/usr/sbin/sshd" "$root/usr/lib/openssh/sshd"
copy_with_closure "$(find /usr/lib /lib -name libnss_extrausers.so.2 -not -path '*/lib32/*' | head -n 1)"

# Open MPI and PMIx load their components with dlopen. OpenSHMEM's are not needed.
mapfile -t parts < <(find "$system"/openmpi "$system"/pmix* -name '*.so*' \
  -not -name 'liboshmem*' -not -name 'mca_spml_*' -not -name 'mca_scoll_*' -not -name 'mca_sshmem_*' -not -name 'mca_memheap_*' -not -name 'mca_atomic_*')
copy_with_closure "${parts[@]}" ${libraries[@]+"${libraries[@]}"}
# Data files: error texts, MCA parameters, and a UTF-8 locale.
while read -r file; do copy "$file"; done < <(find /usr/share/openmpi "${launcher_data[@]}" /etc/openmpi "$system"/pmix*/share \
  /usr/lib/locale/C.utf8 -type f -not -name '*wrapper-data.txt')
copy /etc/os-release

# Users; dtrain-pod adds the pod's user.
cp -r "$here/etc/." "$root/etc/"
{
  echo "root:x:0:0:root:/run/dtrain/home:/bin/bash"
  for id in {1..499}; do echo "user$id:x:$id:$id::/run/dtrain/home:/bin/bash"; done
} >"$root/etc/passwd"
{
  echo "root:x:0:"
  for id in {1..499}; do echo "group$id:x:$id:"; done
} >"$root/etc/group"
for name in passwd group; do ln -s ../../../run/dtrain/$name "$root/var/lib/extrausers/$name"; done

install -m 644 "$here/../../../debian/copyright" "$root/usr/share/doc/dtrain/copyright"
install -m 644 "$here/../../../LICENSE" "$root/usr/share/doc/dtrain/LICENSE"
install -m 755 "$here/../dtrain-pod" "$root/usr/bin/dtrain-pod"
ln -s ../bin/dtrain-pod "$root/usr/sbin/sshd"

# Packages of the files: dpkg knows some by their paths before the /usr merge.
mapfile -t packages < <(printf '%s\n' "${copied[@]}" "${copied[@]#/usr}" | xargs dpkg-query -S 2>/dev/null |
  sed 's/: .*//; s/:.*//' | sort -u)
for package in "${packages[@]}"; do
  dpkg-query -s "$package" | sed '/^Conffiles:/,/^[^ ]/{/^Conffiles:/d; /^ /d}' >"$root/var/lib/dpkg/status.d/$package"
  if [ -e "/usr/share/doc/$package/copyright" ]; then
    mkdir -p "$root/usr/share/doc/$package"
    cp -L "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/copyright"
  fi
done
version=$("$tree/usr/bin/dtrain-info" --version | cut -d ' ' -f 2)
bash "$here/bill-of-materials.sh" "$version" "$tree/packages" "${packages[@]}" >"$root/usr/share/dtrain/sbom.spdx.json"

find "$root" -type d -exec chmod u+rwx,go+rx {} +
echo "$root: ${#packages[@]} packages, $(($(du -sb "$root" | cut -f 1) / 1000000)) MB"
