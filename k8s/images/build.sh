#!/usr/bin/env bash
# Builds the images dtrain-NAME:VERSION with docker or buildah; VERSION is the project's version.
#     k8s/images/build.sh [--push REGISTRY | --output FILE.tar] [--base IMAGE] [--cuda IMAGE] [--tool docker|buildah]
#                         [--prebuilt TREE] [NAME...]
# NAME is cpu (default), cuda, cuda12 or efa.
#   --push REGISTRY  pushes to REGISTRY/dtrain-NAME:VERSION, and sets version and digest in the overlays that use
#                    dtrain-NAME (k8s/set.sh OVERLAY IMAGE=...). Logs in to ECR and creates missing repositories with
#                    the AWS CLI. A registry on localhost needs no TLS.
#   --output FILE    writes one image to an archive for docker, podman and containerd
#   --base IMAGE     Debian 12 base image (default debian:bookworm-slim)
#   --cuda IMAGE     CUDA base image of cuda and cuda12; defaults are in cuda/Dockerfile and cuda12/arguments
#   --prebuilt TREE  uses the programs in TREE, the output of
#                    DESTDIR=TREE cmake --install build --component programs --strip --prefix /usr
#                    and other files of this machine (Debian 12), without compiling
# Exit codes: 0 done, 1 usage, 4 the registry rejects the request, 6 no tool, or the build failed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(realpath "$here/../..")
die() {
  echo "build.sh: $1" >&2
  exit "${2:-1}"
}

registry='' output='' base='' cuda='' tool='' tree=''
names=()
while [ $# != 0 ]; do
  case $1 in
    --push | --output | --base | --cuda | --tool | --prebuilt)
      [ -n "${2:-}" ] || die "$1 needs a value"
      case $1 in
        --push) registry=${2%/} ;;
        --output) output=$2 ;;
        --base) base=$2 ;;
        --cuda) cuda=$2 ;;
        --tool) tool=$2 ;;
        --prebuilt) tree=$2 ;;
      esac
      shift
      ;;
    cpu | cuda | cuda12 | efa) names+=("$1") ;;
    *) die "'$1': expected cpu, cuda, cuda12, efa or an option; see the top of this script" ;;
  esac
  shift
done
[ ${#names[@]} != 0 ] || names=(cpu)
[ -z "$registry" ] || [ -z "$output" ] || die "--push and --output are mutually exclusive"
[ -z "$output" ] || [ ${#names[@]} = 1 ] || die "--output takes one image"
[ -z "$tree" ] || [ "${names[*]}" != efa ] || die "--prebuilt does not support efa"
version=$(sed -n 's/^project(.* VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
if [ -z "$tool" ]; then
  if docker info >/dev/null 2>&1; then tool=docker; elif command -v buildah >/dev/null; then tool=buildah; fi
fi
case $tool in
  docker | buildah) ;;
  '') die "neither a docker daemon nor buildah was found" 6 ;;
  *) die "--tool is '$tool', expected docker or buildah" ;;
esac

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
revision=$(git -C "$source" rev-parse HEAD 2>/dev/null || true)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct 2>/dev/null || date +%s)}

build() {
  local name=$1 arguments argument dockerfile
  dockerfile=$here/$name/Dockerfile
  [ -e "$dockerfile" ] || dockerfile=$here/cuda/Dockerfile
  arguments=(--file "$dockerfile" --tag "dtrain-$name:$version" --label "org.opencontainers.image.title=dtrain-$name"
    --label org.opencontainers.image.vendor=dtrain --label org.opencontainers.image.licenses=Apache-2.0
    --label "org.opencontainers.image.version=$version" --label "org.opencontainers.image.revision=$revision"
    --label "org.opencontainers.image.created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)")
  if [ -e "$here/$name/arguments" ]; then
    while read -r argument; do arguments+=(--build-arg "$argument"); done < <(grep -v '^#' "$here/$name/arguments")
  fi
  [ -z "$base" ] || arguments+=(--build-arg "BASE=$base")
  [ -z "$cuda" ] || arguments+=(--build-arg "CUDA=$cuda")
  [ "$name" != efa ] || arguments+=(--build-arg "CUDA_IMAGE=dtrain-cuda:$version")
  if [ -n "$tree" ]; then
    mkdir -p "$scratch/$name"
    local libraries=()
    [ "$name" = cpu ] || mapfile -t libraries < <("$here/common/cuda-libraries.sh")
    "$here/common/root-filesystem.sh" "$tree" "$scratch/$name/root-filesystem" ${libraries[@]+"${libraries[@]}"} ||
      die "the root file system could not be created" 6
    arguments+=(--build-context "build=$scratch/$name")
  fi
  # The docker format supports health checks, unlike OCI.
  [ "$tool" = docker ] || arguments+=(--format docker --timestamp "$SOURCE_DATE_EPOCH")
  "$tool" build "${arguments[@]}" "$source" || die "dtrain-$name could not be built" 6
}

# Docker uses plain HTTP for localhost by default.
plain=()
if [ "$tool" = buildah ]; then
  host=${registry%%/*}
  case ${host%:*} in localhost | *.localhost | 127.*) plain=(--tls-verify=false) ;; esac
fi

# Creates the ECR repository and logs in with the AWS CLI.
prepare_ecr() {
  local host=${registry%%/*} repository=$1 region=${registry#*.dkr.ecr.}
  region=${region%%.*}
  command -v aws >/dev/null || die "$host is an ECR registry, which needs the AWS CLI" 6
  aws ecr describe-repositories --region "$region" --repository-names "$repository" >/dev/null 2>&1 ||
    aws ecr create-repository --region "$region" --repository-name "$repository" \
      --image-scanning-configuration scanOnPush=true >/dev/null || die "the repository $repository could not be created" 4
  aws ecr get-login-password --region "$region" | "$tool" login "${plain[@]}" --username AWS --password-stdin "$host" >/dev/null ||
    die "login to $host failed" 4
}

# Sets `digest`.
push() {
  local local_name=dtrain-$1:$version place=$registry/dtrain-$1 host=${registry%%/*} path=''
  [ "$host" = "$registry" ] || path=${registry#*/}/
  case $host in *.dkr.ecr.*) prepare_ecr "${path}dtrain-$1" ;; esac
  if [ "$tool" = docker ]; then
    { docker tag "$local_name" "$place:$version" && docker push "$place:$version"; } || die "$host rejected $place" 4
    digest=$(docker image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$place:$version" |
      PLACE=$place@ awk 'index($0, ENVIRON["PLACE"]) == 1 { print substr($0, length(ENVIRON["PLACE"]) + 1); exit }')
  else
    local options=(--digestfile "$scratch/digest" --format v2s2)
    buildah push "${plain[@]}" "${options[@]}" "$local_name" "docker://$place:$version" || die "$host rejected $place" 4
    digest=$(cat "$scratch/digest")
  fi
  [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || die "$host returned no digest of $place" 4
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

case " ${names[*]} " in
  *" efa "*) case " ${names[*]} " in *" cuda "*) ;; *) build cuda ;; esac ;;
esac
for name in "${names[@]}"; do build "$name"; done
if [ -n "$registry" ]; then
  for name in "${names[@]}"; do
    push "$name"
    set_in_overlays "$name" "$registry/dtrain-$name:$version@$digest"
  done
elif [ -n "$output" ]; then
  if [ "$tool" = docker ]; then
    docker save --output "$output" "dtrain-${names[0]}:$version" || die "$output could not be written" 6
  else
    rm -f "$output"
    buildah push "dtrain-${names[0]}:$version" "docker-archive:$output:dtrain-${names[0]}:$version" ||
      die "$output could not be written" 6
  fi
fi
