#!/usr/bin/env bash
# Packages the charts as NAME-VERSION.tgz, and pushes them to a registry as OCI artefacts:
#     k8s/package-charts.sh [--push REGISTRY [--plain-http]] [FOLDER]
# FOLDER is the destination (default: current directory). The packages are reproducible and contain the library chart.
#   --push REGISTRY  pushes each package to oci://REGISTRY/charts/NAME:VERSION with Helm, after `helm registry login`. On
#                    ECR, missing repositories are created with the AWS CLI
#   --plain-http     without TLS, for a registry on localhost
# Exit codes: 0 done, 1 usage, 4 the registry rejects a chart, 6 a tool is missing, or a file cannot be read or written.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() {
  echo "package-charts.sh: $2" >&2
  exit "$1"
}
registry='' plain=() folder=''
while [ $# != 0 ]; do
  case $1 in
    --push)
      [ -n "${2:-}" ] || die 1 "--push needs a registry"
      registry=${2#oci://}
      registry=${registry%/}
      shift
      ;;
    --plain-http) plain=(--plain-http) ;;
    -*) die 1 "unknown option $1; usage: k8s/package-charts.sh [--push REGISTRY [--plain-http]] [FOLDER]" ;;
    *)
      [ -z "$folder" ] || die 1 "expected one folder, found $folder and $1"
      folder=$1
      ;;
  esac
  shift
done
[ -z "$registry" ] || command -v helm >/dev/null || die 6 "helm is not installed: k8s/tools/install.sh helm"
case $registry in *.dkr.ecr.*) command -v aws >/dev/null || die 6 "$registry is an ECR registry, which needs the AWS CLI" ;; esac
folder=${folder:-.}
mkdir -p "$folder" || die 6 "$folder cannot be created"

prepare_ecr() {  # REPOSITORY
  local region=${registry#*.dkr.ecr.}
  region=${region%%.*}
  aws ecr describe-repositories --region "$region" --repository-names "$1" >/dev/null 2>&1 ||
    aws ecr create-repository --region "$region" --repository-name "$1" >/dev/null ||
    die 4 "the repository $1 could not be created"
}

for file in "$here"/charts/*/Chart.yaml; do
  chart=$(dirname "$file")
  name=${chart##*/}
  [ "$name" != dtrain-lib ] || continue
  version=$(sed -n 's/^version: //p' "$file")
  package=$folder/$name-$version.tgz
  # charts/dtrain-lib is a symbolic link; a package contains its files.
  tar --directory "$here/charts" --dereference --hard-dereference --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
    --mode=u+rwX,go+rX,go-w --create "$name" | gzip -n9 >"$package.new" || die 6 "$package cannot be written"
  mv "$package.new" "$package" || die 6 "$package cannot be written"
  echo "$package"
  [ -n "$registry" ] || continue
  case $registry in *.dkr.ecr.*)
    path=${registry#*/}/
    [ "$path" != "$registry/" ] || path=
    prepare_ecr "${path}charts/$name" ;;
  esac
  helm push "$package" "oci://$registry/charts" "${plain[@]}" || die 4 "$registry rejected $package"
done
