#!/usr/bin/env bash
# Makes the Debian packages libdtrain0, libdtrain-dev, dtrain and dtrain-doc of a build tree:
#     debian_packages.sh BUILD FOLDER
# BUILD is a complete tree with the prefix /usr and shared libraries, e.g. of the preset debian. Versions name the suite
# of this system, e.g. 0.2.0-1~deb13u1. The packages are reproducible; their timestamps are SOURCE_DATE_EPOCH, which is
# the time of the last commit by default. Needs dpkg-dev. debian/ has the control fields and the licences.
set -euo pipefail
[ $# = 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 1; }
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
umask 022
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct)}

cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
# shellcheck source=/dev/null
suite=$(. /etc/os-release && echo "$ID ${VERSION_ID:?expected in /etc/os-release} ${VERSION_CODENAME:-unstable}")
read -r system release codename <<<"$suite"
if [ "$system" = debian ]; then revision=1~deb${release}u1; else revision=1~$system$release; fi
version=$(cached CMAKE_PROJECT_VERSION)-$revision
libraries=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)

# stage PACKAGE COMPONENT: installs a component as the files of a package.
stage() {
  mkdir -p "$place/debian/$1/DEBIAN"
  DESTDIR=$place/debian/$1 cmake --install "$build" --component "$2" --strip --prefix /usr >/dev/null
}
stage dtrain programs
stage libdtrain-dev development
stage dtrain-doc documents
mkdir -p "$place/debian/libdtrain0/"{DEBIAN,"$libraries"}
cd "$place/debian"
cp "$source/debian/control" .
mv "dtrain/$libraries"/libdtrain_*.so.* "libdtrain0/$libraries" ||
  { echo "$build: expected shared libraries for $libraries. Configure with --preset debian." >&2; exit 1; }

"$source/scripts/release/check_paths.sh" . "$source" "$build"

# The symbols of a C++ library differ between compilers: dependents need at least the version that they were built with.
for library in "libdtrain0/$libraries"/*.so.?; do
  name=${library##*/}
  echo "${name%.so.*} ${name##*.so.} libdtrain0 (>= ${version%%-*})"
done >libdtrain0/DEBIAN/shlibs
echo "activate-noawait ldconfig" >libdtrain0/DEBIAN/triggers

cat >changelog <<END
dtrain ($version) $codename; urgency=medium

  * Version ${version%%-*}. Changes are listed in changelog.gz.

 -- $(sed -n 's/^Maintainer: //p' control)  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
END

for package in libdtrain0 libdtrain-dev dtrain dtrain-doc; do
  documents=$package/usr/share/doc/$package
  mkdir -p "$documents"
  cp "$source/debian/copyright" "$documents/copyright"
  gzip -9n <changelog >"$documents/changelog.Debian.gz"
  gzip -9n <"$source/CHANGELOG.md" >"$documents/changelog.gz"
  overrides=$source/debian/$package.lintian-overrides
  [ ! -e "$overrides" ] || install -D -m 644 "$overrides" "$package/usr/share/lintian/overrides/$package"

  mapfile -t binaries < <(LC_ALL=C grep -rlaP '^\x7fELF' "$package")
  substvars=$package.substvars
  : >"$substvars"
  if [ ${#binaries[@]} != 0 ]; then
    # In Debian 13, libc6 diverts the dynamic linker, of which dpkg-shlibdeps warns.
    (cd .. && dpkg-shlibdeps -T"debian/$substvars" "${binaries[@]/#/debian/}") 2>shlibdeps.log ||
      { cat shlibdeps.log >&2; exit 1; }
    sed '/diversion/d' shlibdeps.log >&2
  fi
  (cd "$package" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
  (cd .. && dpkg-gencontrol -p"$package" -P"debian/$package" -T"debian/$substvars" -O"debian/$package/DEBIAN/control")
  find "$package" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  # One thread: the compressed bytes depend on the number of threads.
  dpkg-deb --root-owner-group --threads-max=1 --build "$package" "$folder" >/dev/null
done
