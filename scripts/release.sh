#!/usr/bin/env bash
# Makes a release from a clean clone, and tests it:
#     scripts/release.sh VERSION [--out=FOLDER] [--previous=FOLDER] [--cpu] [--once]
# FOLDER (dist) gets
#   dtrain-VERSION-linux-x86_64.tar.gz                      any Linux on x86-64 with glibc 2.31 or later
#   dtrain-VERSION-py3-none-manylinux_2_31_x86_64.whl       the same for pip
#   {dtrain,libdtrain0,libdtrain-dev,dtrain-doc}_*.deb      Debian 13 and 12
#   dtrain-{cpu,cuda,cuda12}-VERSION.{tar,provenance.json}  container images, with SBOM and provenance
#   release-notes.md, SHA256SUMS
# Artefacts are built twice, with --cpu in different folders, and must have the same bytes. Archive and wheel are tried in
# bare roots of Debian 11, 12 and 13, packages in Debian 12 and 13, images in containers.
#   --previous  folder with the packages of the version before, whose upgrade is tried
#   --cpu       without CUDA code and CUDA images
#   --once      without the second build, for trials
# Needs root, debootstrap, crun, iproute2, openssh-client, and pip for CUDA; takes hours on two cores. What was built
# stays in FOLDER if a later step fails. Dependencies of the archive are built once: ~/.cache/dtrain/portable.
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
[ -z "$(ls "$out" 2>/dev/null)" ] || die "$out is not empty"

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
mkdir -p "$out"
out=$(realpath "$out")
scratch=$(mktemp -d --tmpdir="$(dirname "$out")" release.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dtrain
suites=(trixie bookworm)
images=(cpu)
mkdir -p "$cache"/{portable,cuda13,cuda12}
rm -rf --one-file-system "$cache/roots"  # Debian's packages of today
step() { echo; echo "== $(date +%H:%M) $* =="; }
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
# a root of SUITE that PREPARE has prepared. The command writes to /dist, which is OUTPUT.
build_in() {
  local source=$scratch/source
  rm -rf "$source"
  mkdir -p "$source" "$5"
  git archive HEAD | tar x -C "$source"
  scripts/release/in_root.sh "$1" --prepare "$3" --mount "$source:$4" --mount "$5:/dist" \
    --mount "$cache/portable:/cache" --mount "$cache/cuda$2:/usr/local/cuda:ro" \
    "set -e; export SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH DTRAIN_REVISION=$(git rev-parse HEAD); cd $4; $6"
}

# build_packages SUITE TOOLKIT FOLDER OUTPUT
build_packages() {
  step "Debian packages, $1, CUDA $cuda $2, in $3"
  build_in "$1" "$2" "echo $(base64 -w 0 scripts/setup.sh) | base64 -d >/setup.sh && bash /setup.sh build && \
      $install dpkg-dev lintian" "$3" "$4" \
    "cmake --preset debian -DDTRAIN_CUDA=$cuda -DDTRAIN_CUDA_ARCHITECTURES=RELEASE >cmake.log || { cat cmake.log; exit 1; }
    cmake --build --preset debian >build.log || { tail -n 50 build.log; exit 1; }
    scripts/release/debian_packages.sh build-debian /dist
    lintian --fail-on error /dist/*~deb\$(cut -d . -f 1 /etc/debian_version)u1_*.deb"
}

# build_programs FOLDER OUTPUT
build_programs() {
  for suite in "${suites[@]}"; do build_packages "$suite" 13 "$1" "$2"; done
  [ $cuda = OFF ] || build_packages bookworm 12 "$1" "$2/cuda12"
  step "Portable archive and wheel, CUDA $cuda, in $1"
  build_in bookworm 13 "$install g++ make git ca-certificates" "$1" "$2" \
    "scripts/release/portable.sh --out=/dist --cache=/cache --build=$1-build $([ $cuda = OFF ] || echo --cuda)"
}
# build_images FOLDER: images of the packages in it
build_images() {
  step "Images ${images[*]}"
  build_in trixie 13 "$install mmdebstrap python3-pip git ca-certificates" /build/dtrain "$1" \
    "k8s/images/build.sh --from /dist ${images[*]}"
}
# compare FOLDER: its files have the bytes of those in $out.
compare() {
  step "Comparison of the two builds"
  (cd "$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum) >"$scratch/sums"
  (cd "$out" && sha256sum --quiet --check "$scratch/sums") || die "two builds of the same commit differ"
  rm -rf "$1"
}
build_programs /build/dtrain "$out"
if [ -n "$twice" ]; then
  again=/srv/another-folder/dtrain
  [ $cuda = OFF ] || again=/build/dtrain  # nvcc hashes the path of a source into the names of its symbols
  build_programs $again "$scratch/again"
  compare "$scratch/again"
fi
build_images "$out"
if [ -n "$twice" ]; then  # at once: each update of Debian's archive changes the provenance
  mkdir "$scratch/again"
  find "$out" -mindepth 1 -maxdepth 1 \( -name "*.deb" -o -name cuda12 \) -exec cp -al -t "$scratch/again" {} +
  build_images "$scratch/again"
  compare "$scratch/again"
fi

# try_in SUITE PREPARE COMMAND: artefacts are in /dist, packages of the version before in /previous, the scripts of releases
# in /release.
try_in() {
  scripts/release/in_root.sh "$1" --prepare "$2" --mount "$out:/dist:ro" --mount "$PWD/scripts/release:/release:ro" \
    --mount "${previous:-$out}:/previous:ro" "set -e; $3"
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
  try_in "$suite" "$install g++ cmake make openmpi-bin" "
    install() { $install \"\$@\" >/dev/null; }
    ${previous:+install /previous/*.deb}
    install /dist/*~deb\$(cut -d . -f 1 /etc/debian_version)u1_*.deb
    [ -z \"\$(dpkg --audit; dpkg --verify dtrain libdtrain0 libdtrain-dev dtrain-doc)\" ]
    /release/smoke_test.sh /usr"
done
for image in "${images[@]}"; do
  step "Image $image"
  tests/k8s/image_build.sh "$out/dtrain-$image-$version.tar" "$scratch/image"
  python3 tests/k8s/image_test.py "$scratch/image" Containers 2>&1 | tee "$scratch/image.log"
  ! grep -q '^SKIPPED' "$scratch/image.log" || die "the image $image was not tested"
done
step "Quickstart from the archive in a bare trixie"
mkdir -p "$scratch/clone"
git archive HEAD | tar x -C "$scratch/clone"
scripts/release/in_root.sh trixie --mount "$scratch/clone:/clone" --mount "$out:/clone/dist:ro" "time /clone/scripts/quickstart.sh"

echo "$notes" >"$out/release-notes.md"
rm -rf "$out/cuda12"  # packages that only the image cuda12 needs
(cd "$out" && sha256sum -- * >SHA256SUMS)
step "Done"
(cd "$out" && du -h --apparent-size -- *)
echo "To tag it: git tag -a v$version -m 'dtrain $version' $(git rev-parse HEAD) && git push origin v$version"
exit
}
