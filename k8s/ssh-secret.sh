#!/usr/bin/env bash
# Creates the SSH key of a job of the overlay no-operator, as the Secret NAME-ssh:
#     k8s/ssh-secret.sh [--new] NAME [NAMESPACE]
# MPI Operator creates a key for each MPIJob itself. An existing Secret is kept; --new replaces it, after which the pods
# of a running job must be restarted. The key is written only to a private temporary directory.
# Exit codes: 0 done, 1 usage, 4 the cluster rejects the request, 6 no key could be created.
set -euo pipefail
say() { echo "ssh-secret.sh: $*" >&2; }
new=no
if [ "${1:-}" = --new ]; then
  new=yes
  shift
fi
if [ $# -lt 1 ] || [ $# -gt 2 ] || ! [[ $1 =~ ^[a-z]([-a-z0-9]*[a-z0-9])?$ ]]; then
  say "usage: k8s/ssh-secret.sh [--new] NAME [NAMESPACE], with the job's NAME"
  exit 1
fi
secret=$1-ssh
where=(--namespace "${2:-default}")
command -v ssh-keygen >/dev/null || { say "ssh-keygen is not installed"; exit 6; }
command -v kubectl >/dev/null || { say "kubectl is not installed"; exit 6; }
found=$(kubectl get secret "$secret" "${where[@]}" --ignore-not-found -o name) || exit 4
if [ -n "$found" ] && [ $new = no ]; then
  say "$found exists; --new replaces it"
  exit 0
fi
keys=$(mktemp -d)
trap 'rm -rf "$keys"' EXIT
ssh-keygen -q -t ecdsa -b 521 -N '' -C "$secret" -f "$keys/id_rsa" || exit 6
cp "$keys/id_rsa.pub" "$keys/authorized_keys"
if [ -n "$found" ]; then kubectl delete secret "$secret" "${where[@]}" || exit 4; fi
kubectl create secret generic "$secret" "${where[@]}" --from-file="$keys" || exit 4
