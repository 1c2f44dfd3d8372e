#!/usr/bin/env bash
# Runs an overlay, and runs it again: with other parameters or flags, which are changed first as k8s/set.sh does.
#     k8s/run.sh [--no-preflight] OVERLAY [NAME=VALUE...] [--FLAG=VALUE...] [-- ARGUMENT...]
# Jobs that have been started are immutable, so the one of before is deleted, with its pods, and the new one begins
# once they are gone. Data, checkpoints and logs stay: training goes on from the checkpoint of the same NAME. What the
# cluster lacks is said before anything is deleted (k8s/preflight.sh).
# Exit codes: 0 the job is submitted; 1 usage; 4 the cluster refuses, or the job of before does not end within
# DTRAIN_DELETE_TIMEOUT seconds (300); 6 a file or kubectl is missing; 10 and more: those of k8s/preflight.sh.
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
  --timeout="${DTRAIN_DELETE_TIMEOUT:-300}s" || { say "the job of before is not gone"; exit 4; }
kubectl apply -f "$manifest" || exit 4
