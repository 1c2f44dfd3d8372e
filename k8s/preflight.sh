#!/usr/bin/env bash
# Checks a cluster for the prerequisites of a job before it is submitted:
#     k8s/preflight.sh OVERLAY|FILE
#     k8s/preflight.sh --aws [--spot] [INSTANCE_TYPE=COUNT...]
# FILE is a rendered overlay. The script is read-only. Prints one line to stderr for each missing prerequisite; lines
# with `note:` are informational. Nodes that an autoscaler can add are not missing.
# The second form checks an AWS account before a cluster is created: see k8s/tools/preflight-aws.sh.
# Exit codes: 0 nothing is missing; 1 usage, or an invalid Kubernetes name; 4 the cluster does not respond; 6 kubectl is
# not installed. Otherwise the code of the first line:
#   10  the CRD of the job (MPIJob, PyTorchJob, TFJob, TrainJob) is not installed, or not in the required version
#   11  the operator is not running
#   12  a device plugin (nvidia.com/gpu, vpc.amazonaws.com/efa) or huge pages are missing
#   13  the namespace does not exist
#   14  a claim does not exist, is not Bound, or is not ReadWriteMany
#   15  the StorageClass of a pending claim does not exist
#   16  a ResourceQuota of the namespace is too small
#   17  the Kueue LocalQueue does not exist or is not active
#   18  the Secret with the job's key does not exist
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() {
  echo "preflight.sh: $2" >&2
  exit "$1"
}
[ "${1:-}" != --aws ] || exec "$here/tools/preflight-aws.sh" "${@:2}"
[ $# = 1 ] || die 1 "usage: k8s/preflight.sh OVERLAY|FILE"
command -v kubectl >/dev/null || die 6 "kubectl is not installed"

manifest=$(mktemp) || exit 6
trap 'rm -f "$manifest"' EXIT
if [ -f "$1" ]; then
  cat "$1" >"$manifest"
else
  folder=$here/overlays/$1
  [ -d "$folder" ] || folder=$1
  [ -f "$folder/kustomization.yaml" ] || die 1 "there is no overlay $1"
  kubectl kustomize "$folder" >"$manifest" || die 1 "$1 cannot be rendered"
fi

result=0
lacks() {  # CODE MESSAGE
  echo "preflight.sh: $2" >&2
  [ "$result" != 0 ] || result=$1
}
note() { echo "note: $*" >&2; }
ask() { kubectl --request-timeout=20s "$@"; }
# Distinct non-empty values of a key in the manifest.
values() { sed -n "s#^ *\(- \)\{0,1\}$1: *\"\{0,1\}\([^\" ][^\"]*\)\"\{0,1\}\$#\2#p" "$manifest" | sort -u; }
has_kind() { grep -q "^kind: $1\$" "$manifest"; }

# Names become arguments of kubectl: --server=... would send credentials to another server.
for key in namespace claimName secretName 'kueue\.x-k8s\.io/queue-name'; do
  while IFS= read -r name; do
    [[ $name =~ ^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$ ]] ||
      die 1 "${key//\\/} is $(printf %q "$name"): expected lower-case letters, digits, hyphens and dots"
  done < <(values "$key")
done
namespace=$(values namespace | head -n 1)
namespace=${namespace:-default}
ask get --raw /version >/dev/null || die 4 "the cluster does not respond"

# The operators.
check_operator() {  # KIND CRD VERSION NAME-OF-DEPLOYMENT FIELD...
  local kind=$1 crd=$2 version=$3 deployment=$4 served fields field found
  local each='{.metadata.name} {.status.readyReplicas} {.spec.template.spec.containers[0].image}{"\n"}'
  shift 4
  served=$(ask get crd "$crd" --ignore-not-found -o jsonpath='{range .spec.versions[?(@.served==true)]}{.name} {end}')
  if [ -z "$served" ]; then
    lacks 10 "this cluster has no CRD of $kind: install $deployment"
    return
  fi
  if [[ " $served" != *" $version "* ]]; then
    lacks 10 "$kind is served as ${served% }, not as $version: another operator owns it, or $deployment is too old"
    return
  fi
  found=$(ask get deployments --all-namespaces -o \
    jsonpath="{range .items[*]}$each{end}" | grep "$deployment")
  if [ -z "$found" ]; then
    lacks 11 "the CRD of $kind exists, but no Deployment $deployment is running"
    return
  fi
  note "$deployment: ${found##* }"
  [[ $found =~ ^[^\ ]+\ [1-9] ]] || lacks 11 "$deployment has no ready pod"
  fields=$(ask get crd "$crd" -o \
    jsonpath="{.spec.versions[?(@.name=='$version')].schema.openAPIV3Schema.properties.spec}")
  for field in "$@"; do
    if grep -q "^  $field:" "$manifest" && [[ $fields != *"\"$field\""* ]]; then
      lacks 10 "$kind in this cluster has no field spec.$field: install a newer $deployment"
    fi
  done
}
if has_kind MPIJob; then
  check_operator MPIJob mpijobs.kubeflow.org v2beta1 mpi-operator \
    launcherCreationPolicy mpiImplementation runLauncherAsWorker runPolicy slotsPerWorker sshAuthMountPath
fi
if has_kind PyTorchJob; then check_operator PyTorchJob pytorchjobs.kubeflow.org v1 training-operator; fi
if has_kind TFJob; then check_operator TFJob tfjobs.kubeflow.org v1 training-operator; fi
if has_kind TrainJob; then
  check_operator TrainJob trainjobs.trainer.kubeflow.org v1alpha1 trainer-controller runtimeRef trainer
fi

# Devices: the request of each pod against the maximum of all nodes.
check_device() {  # RESOURCE NAME-OF-DAEMONSET
  local wanted most
  wanted=$(values "${1//./\\.}" | sort -n | tail -n 1)
  [ -n "$wanted" ] || return
  most=$(ask get nodes -o go-template="{{range .items}}{{with index .status.allocatable \"$1\"}}{{.}}{{end}}
{{end}}" | sort -n | tail -n 1)
  if [ "${most:-0}" -ge "$wanted" ]; then return; fi
  if ask get daemonsets --all-namespaces -o name | grep -q "$2"; then
    note "no node has $wanted $1 now (maximum: ${most:-0}): the autoscaler must add one"
  else
    lacks 12 "no node has $wanted $1, and there is no device plugin ($2)"
  fi
}
check_device nvidia.com/gpu 'nvidia-device-plugin\|gpu-operator'
check_device vpc.amazonaws.com/efa efa

if ! ask get namespace "$namespace" -o name >/dev/null 2>&1; then
  lacks 13 "there is no namespace $namespace: kubectl create namespace $namespace"
fi

# Claims.
check_claim() {
  local phase modes class
  read -r phase modes class < <(ask get persistentvolumeclaim "$1" --namespace "$namespace" --ignore-not-found \
    -o jsonpath='{.status.phase} {.spec.accessModes} {.spec.storageClassName}')
  if [ -z "${phase:-}" ]; then
    lacks 14 "there is no claim $1 in the namespace $namespace"
  elif [ "$phase" = Bound ]; then
    if [[ $modes != *ReadWriteMany* ]] && [ "$(values replicas | sort -n | tail -n 1)" -gt 1 ] 2>/dev/null; then
      lacks 14 "the claim $1 has access modes ${modes:-none}, but several pods write to it: expected ReadWriteMany"
    fi
  elif [ -n "${class:-}" ] && ! ask get storageclass "$class" -o name >/dev/null 2>&1; then
    lacks 15 "the claim $1 is $phase, and its storage class $class does not exist"
  elif [ -n "${class:-}" ] &&
    [ "$(ask get storageclass "$class" -o jsonpath='{.volumeBindingMode}')" = WaitForFirstConsumer ]; then
    note "the claim $1 is bound when the first pod uses it"
  else
    lacks 14 "the claim $1 is $phase, not Bound: kubectl describe pvc $1 --namespace $namespace"
  fi
}
for claim in $(values claimName); do check_claim "$claim"; done

# Quotas: the requests of all pods against the remaining quota. An old job that still exists counts as used.
# The first file is the manifest, as kustomize writes it; the second has lines QUOTA hard|used RESOURCE AMOUNT.
# shellcheck disable=SC2016  # the dollars are awk's
over_quota='
  function amount(text,   unit, i, units) {  # in thousandths
    gsub(/"/, "", text)
    unit = text
    sub(/^[0-9.]+/, "", unit)
    sub(/[A-Za-z]+$/, "", text)
    if (unit == "m") return text + 0
    for (i = split("Ki Mi Gi Ti Pi", units, " "); i > 0; i--) if (unit == units[i]) return text * 1000 * 1024 ^ i
    for (i = split("k M G T P", units, " "); i > 0; i--) if (unit == units[i]) return text * 1000 ^ (i + 1)
    return text * 1000
  }
  function readable(thousandths) {
    if (thousandths >= 1000 * 1024 ^ 3) return sprintf("%.0fGi", thousandths / 1000 / 1024 ^ 3)
    return sprintf("%g", thousandths / 1000)
  }
  FILENAME == ARGV[1] {
    if (FNR == 1 || /^---/) { pods = 1; inside = 0 }
    if ($1 == "replicas:" || $1 == "numNodes:") pods = $2
    if (/^ *- dependsOn:/) pods = 1
    match($0, /^ */)
    if (inside && RLENGTH <= depth) inside = 0
    if (inside) { name = $1; sub(/:$/, "", name); needed[name] += pods * amount($2) }
    if ($1 == "limits:") { inside = 1; depth = RLENGTH; needed["pods"] += pods * 1000 }
    next
  }
  { amounts[$1, $3, $2] = $4; if ($2 == "hard") resources[$1 " " $3] = 1 }
  END {
    for (key in resources) {
      split(key, part, " ")
      name = part[2]
      sub(/^(requests|limits|count)[.\/]/, "", name)
      used = amounts[part[1], part[2], "used"]
      if ((name in needed) && needed[name] + amount(used == "" ? 0 : used) > amount(amounts[part[1], part[2], "hard"]))
        printf "the quota %s allows %s %s, of which %s are in use; the job needs %s\n", part[1], part[2], \
          amounts[part[1], part[2], "hard"], (used == "" ? 0 : used), readable(needed[name])
    }
  }'
# shellcheck disable=SC2016  # and the template's
quotas='{{range .items}}{{$quota := .metadata.name}}{{range $name, $value := .status.hard -}}
{{$quota}} hard {{$name}} {{$value}}
{{end}}{{range $name, $value := .status.used}}{{$quota}} used {{$name}} {{$value}}
{{end}}{{end}}'
while read -r line; do lacks 16 "$line"; done < <(
  awk "$over_quota" "$manifest" <(ask get resourcequota --namespace "$namespace" -o go-template="$quotas") | sort)

for queue in $(values 'kueue\.x-k8s\.io/queue-name'); do
  active=$(ask get localqueue "$queue" --namespace "$namespace" --ignore-not-found \
    -o jsonpath='{.status.conditions[?(@.type=="Active")].status}' 2>/dev/null)
  [ "$active" = True ] || lacks 17 "the queue $queue of the namespace $namespace is missing or not active"
done

for secret in $(values secretName); do
  if [ -z "$(ask get secret "$secret" --namespace "$namespace" --ignore-not-found -o name)" ]; then
    lacks 18 "there is no secret $secret: k8s/ssh-secret.sh ${secret%-ssh} $namespace"
  fi
done

[ "$result" != 0 ] || note "nothing is missing"
exit "$result"
