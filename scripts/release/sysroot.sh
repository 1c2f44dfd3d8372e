#!/usr/bin/env bash
# sysroot.sh FOLDER: makes a root of Debian 11 (glibc 2.31) for compiling with the host's GCC 12, in FOLDER: C library
# and kernel headers of Debian 11, C++ headers of GCC 12, and the shared runtimes that the artefacts carry, in
# FOLDER/runtime:
#   libdtrain_stdc++.so.6  libstdc++ of GCC 12, linked here against glibc 2.31
#   libgomp.so.1           of Debian 11
# The unwinder, libgcc_s.so.1, is the system's: it belongs to the C library.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$1
# shellcheck source=scripts/release/debian_source.sh
. "$here/debian_source.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$root"

(debian_open "$work/apt" bullseye && debian_unpack "$root" libc6 libc6-dev linux-libc-dev libgcc-s1 libgomp1)
gcc=12
host=$(. /etc/os-release && echo "$VERSION_CODENAME")
(debian_open "$work/host" "$host" && debian_unpack "$work/gcc" libstdc++-$gcc-dev libstdc++-$gcc-pic)

# Absolute links would leave the root.
find "$root" -type l -lname '/*' | while read -r link; do ln -sfn "$root$(readlink "$link")" "$link"; done
libraries=$root/usr/lib/x86_64-linux-gnu
mkdir -p "$root/usr/include/c++" "$root/usr/include/x86_64-linux-gnu/c++" "$root/runtime"
cp -a "$work/gcc/usr/include/c++/$gcc" "$root/usr/include/c++/"
cp -a "$work/gcc/usr/include/x86_64-linux-gnu/c++/$gcc" "$root/usr/include/x86_64-linux-gnu/c++/"
ln -s ../../../lib/x86_64-linux-gnu/libgcc_s.so.1 "$libraries/"
echo 'GROUP ( libgcc_s.so.1 -lgcc )' >"$libraries/libgcc_s.so"  # as GCC's own, but of this root
cp -L "$libraries/libgomp.so.1" "$root/runtime/"
ln -sf libgomp.so.1 "$libraries/libgomp.so"

# The runtime has its own SONAME, because a process may also load the system's libstdc++.so.6. Symbols that are newer than
# Debian 11's libstdc++ get the version prefix DTRAIN_, so that the system's copy need not provide them. Debian compiles
# libstdc++.a as position-independent code; the archive of libstdc++-pic lacks istream::ignore.
runtime=$work/gcc/usr/lib/gcc/x86_64-linux-gnu/$gcc
sed -E 's/\b(GLIBCXX_3\.4\.(29|[3-9][0-9])|CXXABI_1\.3\.(1[3-9]|[2-9][0-9]))\b/DTRAIN_\1/' \
  "$runtime/libstdc++_pic.map" >"$work/map"
"gcc-$gcc" --sysroot="$root" -B"$libraries" -shared -O2 -fPIC -o "$root/runtime/libdtrain_stdc++.so.6" \
  "$here/glibc_compat.c" -Wl,--whole-archive "$runtime/libstdc++.a" -Wl,--no-whole-archive \
  -Wl,--version-script="$work/map" -Wl,-soname,libdtrain_stdc++.so.6 -Wl,-z,relro,-z,now,-z,defs -Wl,-O1 \
  -lpthread -lm -lc -lgcc_s
ln -sf "$root/runtime/libdtrain_stdc++.so.6" "$libraries/libstdc++.so"
strip --strip-unneeded "$root"/runtime/*
