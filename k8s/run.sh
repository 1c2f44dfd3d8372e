#!/usr/bin/env bash
# Submits or resubmits an overlay, optionally with other parameters or flags, which it sets like k8s/set.sh.
#     k8s/run.sh [--no-preflight] OVERLAY [NAME=VALUE...] [--FLAG=VALUE...] [-- ARGUMENT...]
# Jobs are immutable after submission, so the script deletes the old job with its pods and then submits the new one.
# Data, checkpoints and logs are kept: training resumes from the checkpoint of the same NAME. Checks the cluster first
# (k8s/preflight.sh).
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
"$here/set.sh" "$@" >/dev/null || exit
folder=$here/overlays/$overlay
[ -d "$folder" ] || folder=$overlay
command -v kubectl >/dev/null || { say "kubectl is not installed"; exit 6; }
manifest=$(mktemp) || exit 6
trap 'rm -f "$manifest"' EXIT
kubectl kustomize "$folder" >"$manifest" || { say "$overlay cannot be rendered"; exit 1; }
if [ $preflight = yes ]; then "$here/preflight.sh" "$manifest" || exit; fi
kubectl delete -f "$manifest" --ignore-not-found --cascade=foreground --wait \
  --timeout="${DTRAIN_DELETE_TIMEOUT:-300}s" || { say "the old job was not deleted in time"; exit 4; }
kubectl apply -f "$manifest" || exit 4
