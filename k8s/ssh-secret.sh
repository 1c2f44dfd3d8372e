#!/usr/bin/env bash
# Makes the key with which the pods of the overlay no-operator reach each other, as the secret NAME-ssh:
#     k8s/ssh-secret.sh NAME [NAMESPACE]
# mpi-operator makes one for each MPIJob itself. A secret that is there already stays: --new replaces it, and the pods
# of a job that runs have to be started again then. The key is written to a directory of this script's own alone.
# Exit codes: 0 done, 1 usage, 4 the cluster refuses, 6 no key could be made.
set -euo pipefail
say() { echo "ssh-secret.sh: $*" >&2; }
new=no
if [ "${1:-}" = --new ]; then
  new=yes
  shift
fi
if [ $# -lt 1 ] || [ $# -gt 2 ] || ! [[ $1 =~ ^[a-z]([-a-z0-9]*[a-z0-9])?$ ]]; then
  say "usage: k8s/ssh-secret.sh [--new] NAME [NAMESPACE], NAME being that of the job"
  exit 1
fi
secret=$1-ssh
where=(--namespace "${2:-default}")
command -v ssh-keygen >/dev/null || { say "ssh-keygen is not installed"; exit 6; }
command -v kubectl >/dev/null || { say "kubectl is not installed"; exit 6; }
found=$(kubectl get secret "$secret" "${where[@]}" --ignore-not-found -o name) || exit 4
if [ -n "$found" ] && [ $new = no ]; then
  say "$found is there already; --new replaces it"
  exit 0
fi
keys=$(mktemp -d)
trap 'rm -rf "$keys"' EXIT
ssh-keygen -q -t ecdsa -b 521 -N '' -C "$secret" -f "$keys/id_rsa" || exit 6
cp "$keys/id_rsa.pub" "$keys/authorized_keys"
if [ -n "$found" ]; then kubectl delete secret "$secret" "${where[@]}" || exit 4; fi
kubectl create secret generic "$secret" "${where[@]}" --from-file="$keys" || exit 4
