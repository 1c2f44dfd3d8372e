#!/usr/bin/env bash
# Submits or resubmits an overlay, optionally with other parameters or flags, which it sets like k8s/set.sh.
#     k8s/run.sh [--no-preflight] OVERLAY [NAME=VALUE...] [--FLAG=VALUE...] [-- ARGUMENT...]
# Jobs are immutable after submission, so the script deletes the old job with its pods and then submits the new one.
# Data, checkpoints and logs are kept: training resumes from the checkpoint of the same NAME. Checks the cluster first
# (k8s/preflight.sh); if something is missing, neither the overlay nor the old job is changed.
# Exit codes: 0 submitted; 1 usage; 4 the cluster rejects the job, or the old job is not deleted within
# DTRAIN_DELETE_TIMEOUT seconds (300); 6 a file or kubectl is missing; 10 and higher: exit codes of k8s/preflight.sh.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
say() { echo "run.sh: $*" >&2; }
preflight=yes
if [ "${1:-}" = --no-preflight ]; then
  preflight=no
  shift
fi
if [ $# = 0 ]; then
  say "usage: k8s/run.sh [--no-preflight] OVERLAY [NAME=VALUE...] [--FLAG=VALUE...] [-- ARGUMENT...]"
  exit 1
fi
overlay=$1
command -v kubectl >/dev/null || { say "kubectl is not installed"; exit 6; }
folder=$here/overlays/$overlay
[ -d "$folder" ] || folder=$overlay
[ -f "$folder/parameters.yaml" ] || exec "$here/set.sh" "$@"  # which says what is wrong
# The changes are made in a copy first, beside the overlay, since its paths are relative.
copy=$(mktemp -d "$(cd "$folder/.." && pwd)/.run.XXXXXX") || exit 6
trap 'rm -rf "$copy"' EXIT
cp -R "$folder/." "$copy" || exit 6
"$here/set.sh" --output "$copy" "$@" >/dev/null || exit
manifest=$copy/manifest
kubectl kustomize "$copy" >"$manifest" || { say "$overlay cannot be rendered"; exit 1; }
if [ $preflight = yes ]; then "$here/preflight.sh" "$manifest" || exit; fi
"$here/set.sh" "$@" >/dev/null 2>&1 || { say "$overlay cannot be changed"; exit 6; }
kubectl delete -f "$manifest" --ignore-not-found --cascade=foreground --wait \
  --timeout="${DTRAIN_DELETE_TIMEOUT:-300}s" || { say "the old job was not deleted in time"; exit 4; }
kubectl apply -f "$manifest" || exit 4
