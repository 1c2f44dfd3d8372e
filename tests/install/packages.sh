#!/usr/bin/env bash
# packages.sh BUILD_DIR: makes the Debian packages and the archive of the built tree, unpacks them where nothing is
# installed and runs the programs from there; those of the archive must find their libraries in it.
set -euo pipefail
build=$1
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

for kind in DEB TGZ; do
  (cd "$build" && cpack -G $kind -B "$place/packages" >"$place/log") || { cat "$place/log"; exit 1; }
done
cd "$place"
for package in packages/*.deb; do
  dpkg-deb -x "$package" root
  echo "$(dpkg-deb -f "$package" Package) needs $(dpkg-deb -f "$package" Depends)"
done
for file in usr/lib/libdtrain_engine.a usr/include/dtrain/libdtrain/dtrain.h usr/bin/dtrain-mpirun \
  usr/share/man/man1/dtrain-data-verify.1.gz usr/share/bash-completion/completions/dtrain-data; do
  [ -e "root/$file" ] || { echo "no package has $file"; exit 1; }
done

mkdir unpacked
tar xzf packages/*.tar.gz -C unpacked --strip-components=1
for library in libdnnl libfmt libgif libjpeg libpng16 libsodium libtiff libwebp libstdc++ libgomp; do
  found=$(ldd unpacked/bin/dtrain-info | sed -n "s|^\s*$library\.so[^ ]* => \([^ ]*\) .*|\1|p")
  [[ $(realpath "$found") == "$place"/unpacked/lib*/dtrain/* ]] || { echo "$library is taken from '$found'"; exit 1; }
done
# Nor may what the archive's libraries need come from the system where the archive has it.
for file in unpacked/lib*/dtrain/*; do
  library=$(basename "$file")
  if ldd unpacked/bin/dtrain-info | grep -F "$library => " | grep -qv "$place/"; then
    echo "$library is in the archive, but is taken from the system"
    exit 1
  fi
done
for program in root/usr/bin/* unpacked/bin/*; do
  echo "$program: $("$program" --version)"
done
