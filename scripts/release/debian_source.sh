# shellcheck shell=bash
# Functions that read Debian's archive through a private apt state, so that the host's package lists stay as they are.

# debian_open FOLDER SUITE...: later calls read these suites (code names), with mirror, keys and proxy of the host's
# sources. DEBIAN_COMPONENTS names the archive's components (main).
debian_open() {
  local folder=$1 components=${DEBIAN_COMPONENTS:-main} host sources suite
  shift
  host=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mkdir -p "$folder/lists/partial" "$folder/archives/partial"
  sources=$folder/sources.d
  rm -rf "$sources"
  mkdir "$sources"
  for suite in "$@"; do
    if [ -f /etc/apt/sources.list.d/debian.sources ]; then
      sed "s/\b$host/$suite/g; s/^Types:.*/Types: deb deb-src/; s/^Components:.*/Components: $components/" \
        /etc/apt/sources.list.d/debian.sources >"$sources/$suite.sources"
    else
      sed -n "s/\b$host/$suite/g; s/^deb \(.* ${suite}[^ ]*\) .*/deb \1 $components\ndeb-src \1 $components/p" \
        /etc/apt/sources.list >"$sources/$suite.list"
    fi
  done
  cat >"$folder/apt.conf" <<CONF
Dir::Etc::sourcelist "$folder/none";
Dir::Etc::sourceparts "$sources";
Dir::State::lists "$folder/lists";
Dir::State::status "/dev/null";
Dir::Cache "$folder";
APT::Sandbox::User "root";
CONF
  export APT_CONFIG=$folder/apt.conf
  apt-get update -qq
}

# debian_unpack DESTINATION PACKAGE...: unpacks binary packages without installing them.
debian_unpack() {
  local destination=$1 folder
  shift
  folder=$(mktemp -d)
  (cd "$folder" && apt-get download -qq "$@")
  mkdir -p "$destination"
  local package
  for package in "$folder"/*.deb; do dpkg-deb -x "$package" "$destination"; done
  rm -rf "$folder"
}

# debian_versions PACKAGE: versions of a source package, newest first.
debian_versions() { apt-cache showsrc "$1" | sed -n 's/^Version: //p' | sort -rVu; }

# debian_source DESTINATION PACKAGE VERSION: unpacks a source package with Debian's patches; fails if the mirror lacks
# it.
debian_source() {
  local destination=$1 folder
  folder=$(mktemp -d)
  (cd "$folder" && apt-get source -qq "$2=$3") >"$folder/log" 2>&1 || { rm -rf "$folder"; return 1; }
  rm -rf "$destination"
  mkdir -p "$(dirname "$destination")"
  mv "$folder"/*/ "$destination"
  rm -rf "$folder"
}
