#!/usr/bin/env bash
# Makes a release from a clean clone, and tests it: scripts/release.sh VERSION [FOLDER]
# FOLDER (dist) gets
#   dtrain-VERSION-linux-x86_64.tar.gz                      any Linux on x86-64 with glibc 2.31 or later
#   dtrain-VERSION-py3-none-manylinux_2_31_x86_64.whl       the same for pip
#   {dtrain,libdtrain0,libdtrain-dev,dtrain-doc}_*.deb      Debian 13 and 12
#   release-notes.md, SHA256SUMS
# Artefacts are built twice, in different folders, and must have the same bytes; each is tried in bare roots of Debian.
# Needs root and debootstrap; takes three hours on two cores. What was built is kept in FOLDER if a later step fails.
set -euo pipefail
cd "$(dirname "$0")/.."
{  # bash reads the whole block first, so that the script may be edited while it runs
die() { echo "release.sh: $1" >&2; exit 1; }
[ $# = 1 ] || [ $# = 2 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 1; }
version=$1 out=${2:-dist}

project=$(sed -n 's/^project(.* VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[ "$project" = "$version" ] || die "CMakeLists.txt has version $project, expected $version"
[ -z "$(git status --porcelain)" ] || die "the clone has changes: commit or remove them (git status)"
notes=$(awk -v head="## $version - " 'index($0, head) == 1 {on = 1; next} /^## / {on = 0} on' CHANGELOG.md)
[ -n "$notes" ] || die "CHANGELOG.md has no section '## $version - DATE'"
[ "$(id -u)" = 0 ] || die "needs root, for chroot"
[ -z "$(ls "$out" 2>/dev/null)" ] || die "$out is not empty"

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
mkdir -p "$out"
out=$(realpath "$out")
scratch=$(mktemp -d --tmpdir="$(dirname "$out")" release.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
suites=(trixie bookworm)
portable_cache=${XDG_CACHE_HOME:-$HOME/.cache}/dtrain/portable
step() { echo; echo "== $(date +%H:%M) $* =="; }
install='apt-get update -qq && apt-get install -y -qq --no-install-recommends'

# build_in SUITE PREPARE FOLDER OUTPUT COMMAND: runs a command in a fresh copy of the source, mounted at FOLDER in a root
# of SUITE that PREPARE has prepared. The command writes to /dist, which is OUTPUT.
build_in() {
  local source=$scratch/source
  rm -rf "$source"
  mkdir -p "$source" "$4" "$portable_cache"
  git archive HEAD | tar x -C "$source"
  scripts/release/in_root.sh "$1" --prepare "$2" --mount "$source:$3" --mount "$4:/dist" --mount "$portable_cache:/cache" \
    "export SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH; cd $3 && $5"
}

# build_all FOLDER OUTPUT
build_all() {
  local suite setup
  setup=$(base64 -w 0 scripts/setup.sh)
  for suite in "${suites[@]}"; do
    step "Debian packages, $suite, in $1"
    build_in "$suite" "echo $setup | base64 -d >/setup.sh && bash /setup.sh build && $install dpkg-dev lintian" "$1" "$2" \
      "cmake --preset debian >cmake.log && cmake --build --preset debian >build.log && scripts/release/debian_packages.sh \
        build-debian /dist && lintian --fail-on error /dist/*~deb\$(cut -d . -f 1 /etc/debian_version)u1_*.deb"
  done
  step "Portable archive and wheel, in $1"
  build_in bookworm "$install g++ make git ca-certificates" "$1" "$2" \
    "scripts/release/portable.sh --out=/dist --cache=/cache --build=$1-build"
}
build_all /build/dtrain "$out"
build_all /srv/another-folder/dtrain "$scratch/again"
step "Comparison of the two builds"
(cd "$out" && find . -type f | sort | xargs sha256sum) >"$scratch/sums"
(cd "$scratch/again" && sha256sum --quiet --check "$scratch/sums") || die "two builds of the same commit differ"

# try_in SUITE PREPARE COMMAND: artefacts are in /dist, the scripts of releases in /release.
try_in() {
  scripts/release/in_root.sh "$1" --prepare "$2" --mount "$out:/dist:ro" --mount "$PWD/scripts/release:/release:ro" "set -e; $3"
}
for suite in bullseye bookworm trixie; do
  step "Archive in a bare $suite"
  try_in "$suite" : "tar xzf /dist/dtrain-*.tar.gz -C /opt && /release/smoke_test.sh /opt/dtrain-*"
  step "Wheel in a bare $suite"
  try_in "$suite" "$install python3-venv" "python3 -m venv /venv && /venv/bin/pip install -q --no-index /dist/dtrain-*.whl && \
    /release/smoke_test.sh /venv \"\$(/venv/bin/python -m dtrain --prefix)\""
done
for suite in "${suites[@]}"; do
  step "Packages in a bare $suite"
  try_in "$suite" "$install g++ cmake make openmpi-bin" \
    "apt-get install -y -qq --no-install-recommends /dist/*~deb\$(cut -d . -f 1 /etc/debian_version)u1_*.deb >/dev/null && \
    /release/smoke_test.sh /usr"
done
step "Quickstart from the archive in a bare trixie"
git archive HEAD | (mkdir -p "$scratch/clone" && tar x -C "$scratch/clone")
scripts/release/in_root.sh trixie --mount "$scratch/clone:/clone" --mount "$out:/clone/dist:ro" "time /clone/scripts/quickstart.sh"

echo "$notes" >"$out/release-notes.md"
(cd "$out" && sha256sum -- * >SHA256SUMS)
step "Done"
(cd "$out" && du -h --apparent-size -- *)
echo "To tag it: git tag -a v$version -m 'dtrain $version' $(git rev-parse HEAD) && git push origin v$version"
exit
}
