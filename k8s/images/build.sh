#!/usr/bin/env bash
# Builds the images dtrain-NAME:VERSION from a release's packages; VERSION is the project's version.
#     k8s/images/build.sh [--from FOLDER | --prebuilt TREE] [--push REGISTRY | --output FILE.tar] [NAME...]
# NAME is cpu (default), cuda, cuda12 or efa. By default the image is written to FOLDER/dtrain-NAME-VERSION.tar. The first
# line says what is built, from where and to where.
#   --from FOLDER    the packages libdtrain0 and dtrain for Debian 13, by default the folder dist of this repository. For
#                    cuda12 FOLDER/cuda12 has packages for Debian 12, because nvcc 12.4 does not compile on 13. All other
#                    files are from Debian's packages, which mmdebstrap installs to a temporary root.
#   --prebuilt TREE  uses the programs in TREE, the output of
#                    DESTDIR=TREE cmake --install build --component programs --strip --prefix /usr
#                    and other files of this machine (Debian 12 or 13)
#   --push REGISTRY  pushes to REGISTRY/dtrain-NAME:VERSION, and sets version and digest in the overlays that use
#                    dtrain-NAME (k8s/set.sh OVERLAY IMAGE=...). Logs in to ECR and creates missing repositories with
#                    the AWS CLI. A registry on localhost needs no TLS.
#   --output FILE    writes one image to FILE, an OCI archive for docker, podman, containerd and skopeo
# The CUDA images get NVIDIA's libraries from PyPI (NAME/requirements.txt). Neither docker nor a base image is needed.
# Exit codes: 0 done, 1 usage, 4 the registry rejects the request, 6 a tool is missing, or the build failed.
set -euo pipefail
shopt -s nullglob
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(realpath "$here/../..")
die() {
  echo "build.sh: $1" >&2
  exit "${2:-1}"
}

registry='' output='' from='' tree=''
names=()
while [ $# != 0 ]; do
  case $1 in
    --push | --output | --from | --prebuilt)
      [ -n "${2:-}" ] || die "$1 needs a value"
      case $1 in
        --push) registry=${2%/} ;;
        --output) output=$2 ;;
        --from) from=$2 ;;
        --prebuilt) tree=$2 ;;
      esac
      shift
      ;;
    cpu | cuda | cuda12 | efa) names+=("$1") ;;
    *) die "'$1': expected cpu, cuda, cuda12, efa or an option; see the top of this script" ;;
  esac
  shift
done
hint=''
[ ${#names[@]} != 0 ] || { names=(cpu) hint='; name cpu, cuda, cuda12 or efa to build others'; }
[ -z "$registry" ] || [ -z "$output" ] || die "--push and --output are mutually exclusive"
[ -z "$from" ] || [ -z "$tree" ] || die "--from and --prebuilt are mutually exclusive"
[ -z "$output" ] || [ ${#names[@]} = 1 ] || die "--output takes one image"
[ -z "$output" ] || [[ $output == *.tar ]] || die "--output '$output': expected a name that ends with .tar"
[ -z "$tree" ] || [[ " ${names[*]} " != *" efa "* ]] || die "--prebuilt does not support efa"
[ -n "$from" ] || from=$source/dist
version=$(sed -n 's/^project(.* VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
to=${registry:-${output:-$from}}
echo "build.sh: building ${names[*]/#/dtrain-} $version from ${tree:-$from} to $to$hint" >&2
tools=(python3)
[ -n "$tree" ] || tools+=(mmdebstrap dpkg-deb)
[ -z "$registry" ] || tools+=(skopeo)
for tool in "${tools[@]}"; do command -v "$tool" >/dev/null || die "there is no $tool" 6; done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"  # without root, mmdebstrap reads it as another user
revision=${DTRAIN_REVISION:-$(git -C "$source" rev-parse HEAD 2>/dev/null || true)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
[ -z "$(git -C "$source" status --porcelain --untracked-files=no 2>/dev/null)" ] || revision=''  # of other files

# Unpacks dtrain's packages for a Debian release to TREE, and sets `depends`: unpack FOLDER RELEASE TREE.
unpack() {
  local file name number sum release=$2
  local files=("$1"/libdtrain[0-9]*_"$version"*~"deb$release"*.deb "$1"/dtrain_"$version"*~"deb$release"*.deb)
  [ ${#files[@]} = 2 ] ||
    die "'$1': expected packages libdtrain0 and dtrain $version for Debian $release; scripts/release.sh makes them"
  shift
  mkdir -p "$2/var/lib/dpkg/status.d"
  for file in "${files[@]}"; do
    # shellcheck disable=SC2016  # dpkg's variables
    read -r name number < <(dpkg-deb --show --showformat '${Package} ${Version}\n' "$file")
    dpkg-deb --extract "$file" "$2"
    dpkg-deb --field "$file" >"$2/var/lib/dpkg/status.d/$name"
    sum=$(sha256sum "$file")
    echo "$name $number pkg:deb/dtrain/$name@$number?arch=amd64 ${sum%% *}" >>"$2/packages"
  done
  depends=$(for file in "${files[@]}"; do dpkg-deb --field "$file" Depends; done |
    tr ',' '\n' | sed 's/|.*//; s/(.*//; s/ //g; /^dtrain$/d; /^libdtrain/d' | sort -u | paste -sd ,)
}

# Creates the layers of an image in a temporary Debian: assemble NAME WORK
assemble() {
  local name=$1 work=$2 command depends suite=trixie
  local include=openmpi-bin,openssh-server,openssh-client,libnss-extrausers,libcurl4,ca-certificates,mawk,hostname
  if [ "$name" = cuda12 ]; then
    suite=bookworm
    unpack "$from/cuda12" 12 "$work/build/tree"
  else
    unpack "$from" 13 "$work/build/tree"
  fi
  mkdir -p "$work"/build/{k8s,out}
  cp -r "$here" "$work/build/k8s/"
  cp "$source/LICENSE" "$work/build/"
  # The digests of the archive's indices, which have the digests of all packages.
  command='cd /var/lib/apt/lists && sha256sum *_InRelease | sed "s/ [^ ]*_dists_/ /" >/build/base &&
    cd /build && k8s/images/common/root-filesystem.sh tree out/dtrain.tar'
  [ "$name" = cpu ] || command+=' cuda'
  if [ "$name" = efa ]; then
    command+=' && k8s/images/efa/install.sh out/efa.tar'
    include+=,kmod,pciutils
  fi
  apt-config dump | grep '^Acquire::' >"$work/apt.conf"  # proxies and certificates of this machine
  # Hooks get the root as $1.
  mmdebstrap --variant=apt --format=null --aptopt="$work/apt.conf" \
    --include="$include,$depends" \
    --customize-hook="cp -r $work/build \"\$1/\"" \
    --customize-hook="chroot \"\$1\" env SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH bash -c '$command'" \
    --customize-hook="sync-out /build/out $work" --customize-hook="download /build/base $work/base" "$suite" /dev/null \
    >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; return 1; }
}

build() {
  local name=$1 file=$2 work=$scratch/$1 layer bill layers=() options=()
  mkdir -p "$work/build"
  if [ "$name" != cpu ]; then
    "$here/common/cuda-libraries.sh" "$here/${name/efa/cuda}/requirements.txt" "$work/build/cuda" || exit
    mv "$work/build/cuda/layer.tar" "$work/cuda-libraries.tar"
    layers+=("$work/cuda-libraries.tar")
  fi
  if [ -z "$tree" ]; then
    assemble "$name" "$work" || die "the root file system could not be created" 6
    options=(--base "$work/base")
  else
    local cuda=()
    [ "$name" = cpu ] || cuda=("$work/build/cuda")
    "$here/common/root-filesystem.sh" "$tree" "$work/dtrain.tar" "${cuda[@]}" ||
      die "the root file system could not be created" 6
  fi
  rm -rf "$work/build"
  layers+=("$work/dtrain.tar")
  [ "$name" != efa ] || layers+=("$work/efa.tar")
  for layer in "$work"/{dtrain,efa}.tar; do
    [ ! -e "$layer" ] || tar -C "$work" --wildcards -xf "$layer" './usr/share/dtrain/sbom*.spdx.json'
  done
  for bill in "$work"/usr/share/dtrain/*; do options+=(--sbom "$bill"); done
  "$here/image.py" "$name" "${layers[@]}" --version "$version" --revision "$revision" --epoch "$SOURCE_DATE_EPOCH" \
    "${options[@]}" --output "$file" || die "$file could not be written" 6
  rm -rf "$work"
}

# skopeo uses TLS by default.
plain=() plain_copy=()
host=${registry%%/*}
case ${host%:*} in localhost | *.localhost | 127.*) plain=(--tls-verify=false) plain_copy=(--dest-tls-verify=false) ;; esac

# Creates the ECR repository and logs in with the AWS CLI.
prepare_ecr() {
  local repository=$1 region=${registry#*.dkr.ecr.}
  region=${region%%.*}
  command -v aws >/dev/null || die "$host is an ECR registry, which needs the AWS CLI" 6
  aws ecr describe-repositories --region "$region" --repository-names "$repository" >/dev/null 2>&1 ||
    aws ecr create-repository --region "$region" --repository-name "$repository" \
      --image-scanning-configuration scanOnPush=true >/dev/null || die "the repository $repository could not be created" 4
  aws ecr get-login-password --region "$region" | skopeo login "${plain[@]}" --username AWS --password-stdin "$host" >/dev/null ||
    die "login to $host failed" 4
}

# Sets `digest`: push NAME FILE
push() {
  local place=$registry/dtrain-$1 path=''
  [ "$host" = "$registry" ] || path=${registry#*/}/
  case $host in *.dkr.ecr.*) prepare_ecr "${path}dtrain-$1" ;; esac
  skopeo copy --quiet --all --preserve-digests "${plain_copy[@]}" --digestfile "$scratch/digest" "oci-archive:$2" \
    "docker://$place:$version" || die "$host rejected $place" 4
  digest=$(cat "$scratch/digest")
}

set_in_overlays() {
  local name=$1 reference=$2 folder image
  for folder in "$source"/k8s/overlays/*/; do
    [ -e "$folder/parameters.yaml" ] || continue
    image=$(sed -n 's/^  IMAGE: "\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$folder/parameters.yaml")
    image=${image%%@*}
    image=${image##*/}
    if [ "${image%%:*}" = "dtrain-$name" ]; then
      "$source/k8s/set.sh" "$(basename "$folder")" "IMAGE=$reference"
      echo "k8s/overlays/$(basename "$folder"): IMAGE=$reference"
    fi
  done
}

for name in "${names[@]}"; do
  if [ -n "$registry" ]; then
    build "$name" "$scratch/image.tar"
    push "$name" "$scratch/image.tar"
    set_in_overlays "$name" "$registry/dtrain-$name:$version@$digest"
    rm "$scratch"/image.*
  else
    file=${output:-$from/dtrain-$name-$version.tar}
    mkdir -p "$(dirname "$file")"
    build "$name" "$file"
    echo "$file: $(($(stat -c %s "$file") / 1000000)) MB"
  fi
done
