#!/usr/bin/env bash
# Makes a release from a clean clone, and tests it:
#     scripts/release.sh VERSION [--out=FOLDER] [--previous=FOLDER] [--cpu] [--once]
# FOLDER (dist) gets
#   dtrain-VERSION-linux-x86_64.tar.gz                      any Linux on x86-64 with glibc 2.31 or later
#   dtrain-VERSION-py3-none-manylinux_2_31_x86_64.whl       the same for pip
#   {dtrain,libdtrain0,libdtrain-dev,dtrain-doc}_*.deb      Debian 13 and 12
#   dtrain-{cpu,cuda,cuda12}-VERSION.{tar,provenance.json}  container images, with SBOM and provenance
#   dtrain-k8s-VERSION.tar.gz, charts/*.tgz                 manifests and scripts, and Helm charts, for Kubernetes
#   release-notes.md, SHA256SUMS
# Artefacts are built twice, with --cpu in different folders, and must have the same bytes. Archive and wheel are tried in
# bare roots of Debian 11, 12 and 13, packages in Debian 12 and 13, images in containers. Roots also stand for EC2 hosts.
#   --previous  folder with the packages of the version before, whose upgrade is tried
#   --cpu       without CUDA code and CUDA images
#   --once      without the second build, for trials
# Needs root, debootstrap, crun, iproute2, openssh-client, and pip for CUDA; takes hours on two cores. After a failure, a
# call for the same commit continues in FOLDER. Dependencies of the archive are built once: ~/.cache/dtrain/portable.
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "$self")/.."
{  # bash reads the whole block first, so that the script may be edited while it runs
die() { echo "release.sh: $1" >&2; exit 1; }
version='' out=dist previous='' cuda=ON twice=yes
for argument in "$@"; do
  case $argument in
    --out=*) out=${argument#*=} ;;
    --previous=*) previous=${argument#*=} ;;
    --cpu) cuda=OFF ;;
    --once) twice='' ;;
    [0-9]*) version=$argument ;;
    *) version='' && break ;;
  esac
done
[ -n "$version" ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$self" >&2; exit 1; }

project=$(sed -n 's/^project(.* VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[ "$project" = "$version" ] || die "CMakeLists.txt has version $project, expected $version"
[ -z "$(git status --porcelain)" ] || die "the clone has changes: commit or remove them (git status)"
notes=$(awk -v head="## $version - " 'index($0, head) == 1 {on = 1; next} /^## / {on = 0} on' CHANGELOG.md)
[ -n "$notes" ] || die "CHANGELOG.md has no section '## $version - DATE'"
[ "$(id -u)" = 0 ] || die "needs root, for chroot"
tools=(git debootstrap crun ip ssh-keygen python3)
[ $cuda = OFF ] || tools+=(pip)
for tool in "${tools[@]}"; do command -v "$tool" >/dev/null || die "there is no $tool"; done

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
revision=$(git rev-parse HEAD)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dtrain
steps=$out/.release-${revision:0:12}-cuda-$cuda  # names of completed steps
if [ ! -d "$steps" ]; then
  [ -z "$(ls -A "$out" 2>/dev/null)" ] || die "$out is not empty"
  rm -rf --one-file-system "$cache/roots"  # Debian's packages of today
fi
mkdir -p "$steps"
out=$(realpath "$out") steps=$(realpath "$steps")
second=$out/.second
scratch=$(mktemp -d --tmpdir="$(dirname "$out")" release.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
suites=(trixie bookworm)
images=(cpu)
mkdir -p "$cache"/{portable,cuda13,cuda12}
step() { echo; echo "== $(date +%H:%M) $* =="; }
# once NAME COMMAND...: runs a step, unless an earlier call for this commit has completed it.
once() {
  [ ! -e "$steps/$1" ] || return 0
  "${@:2}"
  touch "$steps/$1"
}
install='apt-get update -qq && apt-get install -y -qq --no-install-recommends'

# Toolkits are in /usr/local/cuda of the roots, where a user's CUDA is, too.
if [ $cuda = ON ]; then
  images+=(cuda cuda12)
  for toolkit in 13 12; do
    [ -x "$cache/cuda$toolkit/bin/nvcc" ] && continue
    step "CUDA $toolkit toolkit from packages"
    scripts/release/cuda_toolkit.sh $toolkit "$cache/cuda$toolkit"
  done
fi

# build_in SUITE TOOLKIT PREPARE FOLDER OUTPUT COMMAND: runs a command in a fresh copy of the source, mounted at FOLDER in
# a root of SUITE that PREPARE has prepared. The command writes to /dist, which is OUTPUT. Packages for CUDA 13 and 12
# share objects by ccache, but the two builds do not: each has its own $compiled.
build_in() {
  local source=$scratch/source
  rm -rf "$source"
  mkdir -p "$source" "$5" "$compiled"
  git archive HEAD | tar x -C "$source"
  scripts/release/in_root.sh "$1" --prepare "$3" --mount "$source:$4" --mount "$5:/dist" \
    --mount "$cache/portable:/cache" --mount "$cache/cuda$2:/usr/local/cuda:ro" --mount "$compiled:/ccache" \
    "set -e; export CCACHE_DIR=/ccache SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH DTRAIN_REVISION=$revision; cd $4; $6"
}

# build_packages SUITE TOOLKIT FOLDER OUTPUT
build_packages() {
  step "Debian packages, $1, CUDA $cuda $2, in $3"
  build_in "$1" "$2" "echo $(base64 -w 0 scripts/setup.sh) | base64 -d >/setup.sh && bash /setup.sh build && \
      $install ccache dpkg-dev lintian" "$3" "$4" \
    "cmake --preset debian -DDTRAIN_CUDA=$cuda -DDTRAIN_CUDA_ARCHITECTURES=RELEASE >cmake.log || { cat cmake.log; exit 1; }
    cmake --build --preset debian >build.log || { tail -n 50 build.log; exit 1; }
    scripts/release/debian_packages.sh build-debian /dist
    lintian --fail-on error /dist/*~deb\$(cut -d . -f 1 /etc/debian_version)u1_*.deb"
}

# build_portable FOLDER OUTPUT
build_portable() {
  step "Portable archive and wheel, CUDA $cuda, in $1"
  build_in bookworm 13 "$install g++ make git ca-certificates" "$1" "$2" \
    "scripts/release/portable.sh --out=/dist --cache=/cache --build=$1-build $([ "$cuda" = OFF ] || echo --cuda)"
}
# build_programs NAME FOLDER OUTPUT
build_programs() {
  compiled=$scratch/ccache-$1
  once "$1-portable" build_portable "$2" "$3"
  for suite in "${suites[@]}"; do once "$1-$suite" build_packages "$suite" 13 "$2" "$3"; done
  [ $cuda = OFF ] || once "$1-cuda12" build_packages bookworm 12 "$2" "$3/cuda12"
}
# build_images FOLDER: images of the packages in it
build_images() {
  step "Images ${images[*]}"
  build_in trixie 13 "$install mmdebstrap python3-pip git ca-certificates" /build/dtrain "$1" \
    "k8s/images/build.sh --from /dist ${images[*]}"
}
# compare FOLDER: its files have the bytes of those in $out.
compare() {
  step "Comparison of two builds"
  (cd "$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum) >"$scratch/sums"
  (cd "$out" && sha256sum --quiet --check "$scratch/sums") ||
    die "two builds of the same commit differ. Images differ, too, if Debian's archive was updated in between"
  rm -rf "$1"
}
# try_in SUITE PREPARE COMMAND: artefacts are in /dist, packages of the version before in /previous, the scripts of
# releases in /release.
try_in() {
  scripts/release/in_root.sh "$1" --prepare "$2" --mount "$out:/dist:ro" --mount "$PWD/scripts/release:/release:ro" \
    --mount "${previous:-$out}:/previous:ro" "set -e; $3"
}
try_archive() {
  step "Archive in a bare $1"
  try_in "$1" : "tar xzf /dist/dtrain-*.tar.gz -C /opt && /release/smoke_test.sh /opt/dtrain-*"
}
try_wheel() {
  step "Wheel in a bare $1"
  try_in "$1" "$install python3-venv" "python3 -m venv /venv && /venv/bin/pip install -q --no-index /dist/dtrain-*.whl && \
    /release/smoke_test.sh /venv \"\$(/venv/bin/python -m dtrain --prefix)\""
}
try_packages() {
  step "Packages in a bare $1"
  try_in "$1" "$install g++ cmake make openmpi-bin" "
    install() { $install \"\$@\" >/dev/null; }
    ${previous:+install /previous/*.deb}
    install /dist/*~deb\$(cut -d . -f 1 /etc/debian_version)u1_*.deb
    [ -z \"\$(dpkg --audit; dpkg --verify dtrain libdtrain0 libdtrain-dev dtrain-doc)\" ]
    /release/smoke_test.sh /usr"
}
try_image() {
  step "Image $1"
  tests/k8s/image_build.sh "$out/dtrain-$1-$version.tar" "$scratch/image"
  python3 tests/k8s/image_test.py "$scratch/image" Containers 2>&1 | tee "$scratch/image.log"
  ! grep -q '^SKIPPED' "$scratch/image.log" || die "the image $1 was not tested"
}
try_hosts() {  # SUITE
  step "EC2 host in a bare $1"
  tests/k8s/ec2_release.sh "$out" "$1"
}
try_quickstart() {
  step "Quickstart from the archive in a bare trixie"
  mkdir -p "$scratch/clone"
  git archive HEAD | tar x -C "$scratch/clone"
  scripts/release/in_root.sh trixie --mount "$scratch/clone:/clone" --mount "$out:/clone/dist:ro" \
    "time /clone/scripts/quickstart.sh"
}

build_programs first /build/dtrain "$out"
once images build_images "$out"
for suite in bullseye bookworm trixie; do
  once "archive-$suite" try_archive "$suite"
  once "wheel-$suite" try_wheel "$suite"
done
for suite in "${suites[@]}"; do once "packages-$suite" try_packages "$suite"; done
for suite in bullseye "${suites[@]}"; do once "hosts-$suite" try_hosts "$suite"; done
for image in "${images[@]}"; do once "image-$image" try_image "$image"; done
once quickstart try_quickstart
if [ -n "$twice" ]; then
  again=/srv/another-folder/dtrain
  [ $cuda = OFF ] || again=/build/dtrain  # nvcc hashes the path of a source into the names of its symbols
  build_programs second $again "$second"
  once second-images build_images "$second"
  once compared compare "$second"
fi

step "Manifests and charts"
k8s/bundle.sh "$out"
k8s/package-charts.sh "$out/charts"
echo "$notes" >"$out/release-notes.md"
rm -r "$steps"
rm -rf "$out/cuda12"  # packages that only the image cuda12 needs
(cd "$out" && find . -type f -printf '%P\0' | sort -z | xargs -0 sha256sum) >"$scratch/sums"
mv "$scratch/sums" "$out/SHA256SUMS"
step "Done"
(cd "$out" && du -h --apparent-size -- *)
echo "To tag it: git tag -a v$version -m 'dtrain $version' $(git rev-parse HEAD) && git push origin v$version"
exit
}
