#!/usr/bin/env bash
# packages.sh BUILD_DIR: makes the Debian packages of the build tree twice, with other umasks, which must give the same
# bytes. Tests control fields, files, permissions, licences and size, and runs the programs in an empty folder.
set -euo pipefail
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
fail() { echo "$*"; exit 1; }
export DPKG_DEB_COMPRESSOR_TYPE=none  # xz takes half of the time

for mask in 077 000; do
  (umask $mask && "$source/scripts/release/debian_packages.sh" "$build" "packages$mask") >log 2>&1 || fail "$(cat log)"
  [ ! -s log ] || fail "$(cat log)"
  mv "packages$mask" "$mask"
done
mv 077 packages
for package in packages/*; do cmp "$package" "000/${package#*/}"; done
rm -r 000

declare -A files=()
size=0
# shellcheck source=/dev/null
suite=$(. /etc/os-release && echo "${ID/debian/deb}$VERSION_ID")
for package in packages/*.deb; do
  name=$(dpkg-deb -f "$package" Package)
  files[$name]=$package
  dpkg-deb -x "$package" root
  echo "$package needs $(dpkg-deb -f "$package" Depends)"
  [[ $package == packages/${name}_*~$suite*.deb ]] || fail "$package does not name the suite $suite"
  for field in Maintainer Section Priority Description Installed-Size; do
    [ -n "$(dpkg-deb -f "$package" "$field")" ] || fail "$package has no field $field"
  done
  [ "$name" = dtrain-doc ] || size=$((size + $(dpkg-deb -f "$package" Installed-Size)))
  for document in copyright changelog.gz changelog.Debian.gz; do
    [ -s "root/usr/share/doc/$name/$document" ] || fail "$package has no $document"
  done
done
[ ${#files[@]} = 4 ] || fail "expected 4 packages: ${!files[*]}"
echo "installed size without documents: $((size / 1024)) MiB"
[ $((size * 1024)) -le 45000000 ] || fail "the packages without documents take $size KiB, expected at most 45 MB"
for software in nlohmann-json tomlplusplus prometheus-cpp fmt boost protobuf onednn gcc cuda; do
  grep -q "^Files: $software/" root/usr/share/doc/dtrain/copyright || fail "there is no licence of $software"
done
mapfile -t licenses < <(sed -n 's/^License: \([^ ]*\)$/\1/p' root/usr/share/doc/dtrain/copyright | sort -u)
for license in "${licenses[@]}"; do
  grep -A1 -x "License: $license" root/usr/share/doc/dtrain/copyright | grep -q '^ ' || fail "no text of $license"
done

expect_depends() {  # PACKAGE PATTERN...
  local depends pattern
  depends=$(dpkg-deb -f "${files[$1]}" Depends)
  for pattern in "${@:2}"; do
    [[ ", $depends," =~ ,\ ($pattern), ]] || fail "$1 does not depend on $pattern: $depends"
  done
}
version=$(dpkg-deb -f "${files[dtrain]}" Version)
expect_depends libdtrain0 'libdnnl[^,]*' 'libjpeg[^,]*' 'libprotobuf-lite[^,]*' 'libstdc\+\+6[^,]*'
# libprometheus-cpp is used by private libraries alone.
expect_depends dtrain "libdtrain0 \(= ${version//+/\\+}\)" 'libprometheus-cpp-pull[^,]*' 'libhwloc15[^,]*'
expect_depends libdtrain-dev "libdtrain0 \(= ${version//+/\\+}\)"
[ "$(dpkg-deb -f "${files[dtrain-doc]}" Architecture)" = all ] || fail "dtrain-doc is not for all architectures"

# Which file is in which package.
expect_files() {  # PACKAGE FILE...
  local listing file
  listing=$(dpkg-deb -c "${files[$1]}" | awk '{print $6}')
  for file in "${@:2}"; do
    grep -qxE "\./$file" <<<"$listing" || fail "$1 does not contain $file"
  done
}
libraries=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
for name in engine models data; do
  expect_files libdtrain0 "$libraries/libdtrain_$name\.so\.0"
  expect_files libdtrain-dev "$libraries/libdtrain_$name\.so"
done
expect_files libdtrain-dev "$libraries/cmake/dtrain/dtrain-config\.cmake" "$libraries/pkgconfig/dtrain\.pc" \
  usr/include/dtrain/dtrain.h
expect_files dtrain usr/bin/dtrain-mpirun "$libraries/dtrain/libdtrain_cli\.so\..*" \
  usr/share/man/man1/dtrain-data-verify.1.gz usr/share/bash-completion/completions/dtrain-data
expect_files dtrain-doc usr/share/doc/dtrain/README.md usr/share/doc/dtrain/docs/{README,detection}.md \
  usr/share/doc/dtrain/docs/design/cpu-engine.md usr/share/doc/dtrain/docs/detections.png \
  usr/share/doc/dtrain/examples/{CMakeLists.txt,train_cifar.cpp,monitoring/alerts.yml} \
  usr/share/doc/dtrain/examples/{slurm/train.sbatch,tracking/forward_metrics.py}
# Relative links of installed pages.
(cd root/usr/share/doc/dtrain
  find . -name '*.md' | while read -r page; do
    { grep -oP '\]\(\K[^)# :]+(?=[)#])' "$page" || true; } | while read -r link; do
      [ -e "$(dirname "$page")/$link" ] || { echo "$page links to $link, which is not installed"; exit 1; }
    done
  done)

# Binaries are stripped, find libraries only beside themselves, and have no executable stack.
LC_ALL=C grep -rlaP '^\x7fELF' root >binaries
[ "$(wc -l <binaries)" -ge 20 ] || fail "there are only $(wc -l <binaries) binaries"
while read -r file; do
  [[ $(file -b "$file") != *"not stripped"* ]] || fail "$file is not stripped"
  paths=$(readelf -d "$file" | sed -n 's/.*PATH).*\[\(.*\)\]/\1/p' | tr ':' '\n' | grep -v '^[$]ORIGIN' || true)
  [ -z "$paths" ] || fail "$file looks for libraries in $paths"
  readelf -lW "$file" | grep 'GNU_STACK' | grep -qv 'RWE' || fail "$file has an executable stack"
done <binaries

checks=0
# Reports entries of a listing by tar with unexpected mode or owner, absolute names, or links that leave the package.
check_listing() {  # NAME LISTING
  local odd
  odd=$(awk '
    $1 !~ /^(drwxr-xr-x|-rw-r--r--|-rwxr-xr-x|lrwxrwxrwx)$/ {print "mode: " $0}
    $2 != "root/root" {print "owner: " $0}
    $6 ~ /^\/|(^|\/)\.\.(\/|$)/ {print "name: " $0}
    $7 == "->" && $8 ~ /^\/|\.\./ {print "link: " $0}' <<<"$2")
  [ -z "$odd" ] || { echo "$1 holds"; echo "$odd"; exit 1; }
  checks=$((checks + 4))
}
for package in packages/*.deb; do
  check_listing "$package" "$(dpkg-deb -c "$package")"
  # Nothing is run when it is installed, and what it holds has the digests that it states.
  dpkg-deb -e "$package" control
  for script in control/{preinst,postinst,prerm,postrm,config}; do
    [ ! -e "$script" ] || fail "$package runs a script: $script"
  done
  (cd root && md5sum --quiet -c ../control/md5sums)
  rm -r control
  checks=$((checks + 2))
done
echo "$checks checks of package files passed"

for program in root/usr/bin/*; do
  echo "$program: $("$program" --version)"
done
