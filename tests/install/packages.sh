#!/usr/bin/env bash
# packages.sh BUILD_DIR: creates the Debian packages and the archive of the build tree, unpacks them to an empty folder
# and runs the programs there; programs of the archive must find their libraries in it. Packs with umask 077 and 000,
# which must not affect the permissions in a package.
set -euo pipefail
build=$1
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

declare -A masks=([DEB]=077 [TGZ]=000)
for kind in DEB TGZ; do
  (cd "$build" && umask "${masks[$kind]}" && cpack -G $kind -B "$place/packages" >"$place/log") || { cat "$place/log"; exit 1; }
done
cd "$place"
for package in packages/*.deb; do
  dpkg-deb -x "$package" root
  echo "$(dpkg-deb -f "$package" Package) needs $(dpkg-deb -f "$package" Depends)"
done
for file in usr/lib/libdtrain_engine.a usr/include/dtrain/libdtrain/dtrain.h usr/bin/dtrain-mpirun \
  usr/share/man/man1/dtrain-data-verify.1.gz usr/share/bash-completion/completions/dtrain-data \
  usr/share/doc/dtrain/README.md usr/share/doc/dtrain/docs/{README,detection}.md \
  usr/share/doc/dtrain/docs/design/cpu-engine.md usr/share/doc/dtrain/docs/detections.png \
  usr/share/doc/dtrain/examples/{CMakeLists.txt,train_cifar.cpp,monitoring/alerts.yml}; do
  [ -e "root/$file" ] || { echo "no package has $file"; exit 1; }
done
# Relative links of installed pages.
(cd root/usr/share/doc/dtrain
  find . -name '*.md' | while read -r page; do
    { grep -oP '\]\(\K[^)# :]+(?=[)#])' "$page" || true; } | while read -r link; do
      [ -e "$(dirname "$page")/$link" ] || { echo "$page links to $link, which is not installed"; exit 1; }
    done
  done)

met=0
# Entries of a listing by tar that have other permissions than those of a system, or names or links that lead elsewhere.
check_listing() {  # NAME OWNER LISTING
  local odd
  odd=$(awk -v owner="$2" '
    $1 !~ /^(drwxr-xr-x|-rw-r--r--|-rwxr-xr-x|lrwxrwxrwx)$/ {print "mode: " $0}
    owner != "" && $2 != owner {print "owner: " $0}
    $6 ~ /^\/|(^|\/)\.\.(\/|$)/ {print "name: " $0}
    $7 == "->" && $8 ~ /^\/|\.\./ {print "link: " $0}' <<<"$3")
  [ -z "$odd" ] || { echo "$1 holds"; echo "$odd"; exit 1; }
  met=$((met + 4))
}
for package in packages/*.deb; do
  check_listing "$package" root/root "$(dpkg-deb -c "$package")"
  # Nothing is run when it is installed, and what it holds has the digests that it states.
  dpkg-deb -e "$package" control
  for script in control/{preinst,postinst,prerm,postrm,config}; do
    [ ! -e "$script" ] || { echo "$package runs a script: $script"; exit 1; }
  done
  (cd root && md5sum --quiet -c ../control/md5sums)
  rm -r control
  met=$((met + 2))
done
check_listing "the archive" "" "$(tar tvzf packages/*.tar.gz)"
echo "$met of $met attacks were handled"

mkdir unpacked
tar xzf packages/*.tar.gz -C unpacked --strip-components=1
diff -r root/usr/share/doc/dtrain unpacked/share/doc/dtrain
for library in libdnnl libfmt libgif libjpeg libpng16 libprotobuf-lite libsodium libtiff libwebp libstdc++ libgomp; do
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
