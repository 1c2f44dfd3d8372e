# shellcheck shell=bash disable=SC2154  # variables of k8s/preflight.sh
# Volumes and secrets of a job, for k8s/preflight.sh.

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

# The Pod Security level `restricted` refuses pods with an NFS volume; `baseline` accepts them.
check_pod_security() {
  local level
  grep -q '|volumes|[0-9]*|nfs|' "$work/values" || return 0
  level=$(ask get namespace "$namespace" --ignore-not-found \
    -o jsonpath='{.metadata.labels.pod-security\.kubernetes\.io/enforce}')
  [ "$level" != restricted ] ||
    lacks 21 "the namespace $namespace has the Pod Security level restricted, which refuses the NFS volume of the job: use \
a claim (k8s/storage/nfs), or kubectl label namespace $namespace --overwrite pod-security.kubernetes.io/enforce=baseline"
}

check_secret() {
  if [ -z "$(ask get secret "$1" --namespace "$namespace" --ignore-not-found -o name)" ]; then
    lacks 18 "there is no secret $1: k8s/ssh-secret.sh ${1%-ssh} $namespace"
  fi
}
