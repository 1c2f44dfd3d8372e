#!/usr/bin/env bash
# Installs the cluster components that jobs need: MPI Operator, the device plugins of NVIDIA and EFA, and the CSI
# drivers of EFS, FSx for Lustre and EBS: the rows `manifest` of k8s/versions.txt.
#     k8s/cluster/install.sh [--list FILE] [COMPONENT...]
# Installs all components by default. The script is idempotent: it applies its own components again, which updates them
# to the listed version, and leaves components of other tools unchanged. --list replaces versions.txt.
# Manifests are fetched with git at the listed commit, which pins their content. Needs kubectl, git, and helm for
# charts.
# Exit codes: 0 done, 1 usage, 4 the cluster does not respond or rejects a manifest, 5 a commit could not be fetched,
# 6 a tool is missing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() {
  echo "install.sh: $2" >&2
  exit "$1"
}
list=$here/../versions.txt
if [ "${1:-}" = --list ]; then
  [ -f "${2:-}" ] || die 1 "--list needs a file"
  list=$2
  shift 2
fi
# Rows are validated: no field is an option of git, helm or kubectl, or a path that leaves the repository.
expected='^ *manifest +([a-z][a-z0-9-]*) +([A-Za-z0-9][A-Za-z0-9._+-]*) +([0-9]{4}-[0-9]{2}-[0-9]{2}) +'
expected+='([A-Za-z0-9/][A-Za-z0-9@:/._~%+-]*) +([0-9a-f]{40}) +'
expected+='([A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*) +'
expected+='([a-z0-9][a-z0-9-]*)/([a-z]+/[a-z0-9][a-z0-9.-]*) *$'
names=() rows=()
while IFS= read -r row; do
  read -r kind _ <<<"$row"
  case $kind in kustomization | chart | service | provider | tool | image | minimum) continue ;; esac
  [[ ${row//[[:space:]]/ } =~ $expected ]] ||
    die 1 "$list: $(printf %q "$row"): expected manifest NAME VERSION DATE REPOSITORY COMMIT PATH NAMESPACE/KIND/NAME"
  names+=("${BASH_REMATCH[1]}")
  rows+=("${BASH_REMATCH[*]:1:2} ${BASH_REMATCH[*]:4:3} ${BASH_REMATCH[*]:8:2}")
done < <(grep -vE '^[[:space:]]*(#|$)' "$list")
for name in "$@"; do
  [[ " ${names[*]} " == *" $name "* ]] || die 1 "unknown component '$name': expected one of ${names[*]}"
done
for program in kubectl git; do command -v "$program" >/dev/null || die 6 "$program is not installed"; done
kubectl --request-timeout=20s get --raw /version >/dev/null || die 4 "the cluster does not respond"
work=$(mktemp -d) || die 6 "no temporary folder could be created"
trap 'rm -rf "$work"' EXIT
manager=dtrain-install

fetch() {  # REPOSITORY COMMIT FOLDER
  git init --quiet "$3" && git -C "$3" fetch --quiet --depth 1 -- "$1" "$2" &&
    git -C "$3" -c advice.detachedHead=false checkout --quiet "$2"
}
manifests() {  # FOLDER PATH NAMESPACE
  if [ -f "$1/$2" ]; then
    cat "$1/$2"
  elif [ -f "$1/$2/Chart.yaml" ]; then
    # Device plugins must tolerate the taint of GPU nodes.
    helm template --namespace "$3" --set-json 'tolerations=[{"operator":"Exists"}]' -- "${2##*/}" "$1/$2"
  else
    kubectl kustomize "$1/$2"
  fi
}
install_one() {  # NAME VERSION REPOSITORY COMMIT PATH NAMESPACE OBJECT
  local name=$1 namespace=$6 object=$7 found
  found=$(kubectl get "$object" --namespace "$namespace" --ignore-not-found --show-managed-fields \
    -o jsonpath='{.spec.template.spec.containers[0].image} {.metadata.managedFields[*].manager}') ||
    die 4 "the cluster could not be queried for $object"
  if [ -n "$found" ] && [[ " ${found#* } " != *" $manager "* ]]; then
    echo "$name: exists as ${found%% *}, installed by another tool, not changed"
    return
  fi
  if [[ $5 != *.y*ml ]] && [ "$name" = efa-device-plugin ] && ! command -v helm >/dev/null; then
    die 6 "helm is not installed, which $name requires: k8s/tools/install.sh helm"
  fi
  fetch "$3" "$4" "$work/$name" || die 5 "$name: the commit $4 of $3 cannot be fetched"
  manifests "$work/$name" "$5" "$namespace" >"$work/$name.yaml" || die 5 "$name: $5 of $3 cannot be rendered"
  kubectl apply --server-side --field-manager="$manager" --namespace "$namespace" -f "$work/$name.yaml" >"$work/log" ||
    die 4 "$name: rejected by the cluster"
  if [ -z "$found" ]; then
    echo "$name $2: installed"
  else
    echo "$name $2: exists as ${found%% *}, applied again"
  fi
}
for row in "${rows[@]}"; do
  read -ra fields <<<"$row"
  if [ $# = 0 ] || [[ " $* " == *" ${fields[0]} "* ]]; then install_one "${fields[@]}"; fi
done
