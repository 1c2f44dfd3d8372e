#!/usr/bin/env bash
# Checks a cluster for the prerequisites of a job before it is submitted:
#     k8s/preflight.sh [--read-only] OVERLAY|FILE
#     k8s/preflight.sh --aws [--spot] [INSTANCE_TYPE=COUNT...]
# FILE is a rendered overlay. The script changes nothing, except that a pod looks for the initial weights of a job on its
# claim and is deleted; --read-only omits this. DTRAIN_PROBE_IMAGE is the image of the pod (default: the job's), and
# DTRAIN_PROBE_SECONDS how long it may take to start (180). Prints one line to stderr for each missing prerequisite; lines
# with `note:` are informational. Nodes that an autoscaler can add are not missing: the script applies the rules of the
# cluster autoscaler, whose node groups it reads with the AWS CLI, and of Karpenter (k8s/cluster/README.md).
# The second form checks an AWS account before a cluster is created: see k8s/tools/preflight-aws.sh.
# Exit codes: 0 nothing is missing; 1 usage, an invalid Kubernetes name, or SHM that is not less than MEMORY; 4 the
# cluster does not respond; 6 kubectl is not installed. Otherwise the code of the first line:
#   10  the CRD of the job (MPIJob, PyTorchJob, TFJob, TrainJob) is not installed, or not in the required version
#   11  the operator is not running
#   12  no node has the devices (nvidia.com/gpu, vpc.amazonaws.com/efa), huge pages, CPU, memory, labels or driver that a
#       pod needs, and no autoscaler can add one
#   13  the namespace does not exist
#   14  a claim does not exist, is not Bound, or is not ReadWriteMany
#   15  the StorageClass of a pending claim does not exist
#   16  a ResourceQuota of the namespace is too small
#   17  the Kueue LocalQueue does not exist or is not active, or its ClusterQueue has no or too little quota of a resource
#   18  the Secret with the job's key does not exist
#   19  an image cannot be pulled
#   20  initial weights of the job are missing on their claim, empty, or differ from the record of their download
#   21  the Pod Security level of the namespace refuses the job's pods
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() {
  echo "preflight.sh: $2" >&2
  exit "$1"
}
[ "${1:-}" != --aws ] || exec "$here/tools/preflight-aws.sh" "${@:2}"
# shellcheck disable=SC2034  # for the parts
{ probe=yes && [ "${1:-}" != --read-only ]; } || { probe=no && shift; }
[ $# = 1 ] || die 1 "usage: k8s/preflight.sh [--read-only] OVERLAY|FILE"
command -v kubectl >/dev/null || die 6 "kubectl is not installed"
work=$(mktemp -d) || exit 6
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2034  # for the parts
manifest=$work/manifest

result=0
lacks() {  # CODE MESSAGE
  echo "preflight.sh: $2" >&2
  [ "$result" != 0 ] || result=$1
}
note() { echo "note: $*" >&2; }
ask() { kubectl --request-timeout=20s "$@"; }
for part in manifest operators nodes autoscalers storage weights quotas images; do
  # shellcheck disable=SC1090  # the parts are listed here
  . "$here/lib/preflight-$part.sh"
done

read_manifest "$1"
check_names
namespace=$(namespace_of_manifest)
check_shared_memory
ask get --raw /version >/dev/null || die 4 "the cluster does not respond"
read_deployments
check_operators
check_nodes
if ! ask get namespace "$namespace" -o name >/dev/null 2>&1; then
  lacks 13 "there is no namespace $namespace: kubectl create namespace $namespace"
fi
check_pod_security
for claim in $(values claimName); do check_claim "$claim"; done
check_weights "$manifest"
check_quotas
for queue in $(values kueue.x-k8s.io/queue-name); do check_queue "$queue"; done
for secret in $(values secretName); do check_secret "$secret"; done
check_images

[ "$result" != 0 ] || note "nothing is missing"
exit "$result"
