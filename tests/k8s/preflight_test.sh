#!/usr/bin/env bash
# Tests k8s/preflight.sh and k8s/run.sh with a fake kubectl that answers from files: preflight_test.sh SOURCE_DIR
set -uo pipefail
source=$1
# shellcheck source-path=SCRIPTDIR source=preflight_cluster.sh
. "$source/tests/k8s/preflight_cluster.sh"

for overlay in smoke mask-rcnn kueue no-operator trainjob resnet50-cpu-single-pvc gpu-1node elastic; do
  sound
  expect 0 $overlay "nothing is missing"
done
sound && expect 0 smoke "mpi-operator:v0.8.2"
sound
"$source/k8s/preflight.sh" smoke >/dev/null 2>&1 || { echo "preflight smoke failed"; failures=$((failures + 1)); }
sound && expect 1 nonsense "no overlay"
sound && touch "$FAKE/fail-get" && expect 4 smoke "does not respond"
sound && rm "$FAKE/get-crd-mpijobs.kubeflow.org" && expect 10 smoke "no CRD of MPIJob"
sound && echo 'v1 ' >"$FAKE/get-crd-mpijobs.kubeflow.org" && expect 10 smoke "not as v2beta1"
sound && lines 'v2beta1 ' '{"slotsPerWorker":{}}' >"$FAKE/get-crd-mpijobs.kubeflow.org" &&
  expect 10 smoke "has no field spec.launcherCreationPolicy"
sound && rm "$FAKE/get-crd-trainjobs.trainer.kubeflow.org" && expect 10 trainjob "no CRD of TrainJob"
sound && lines 'coredns\t1\tcoredns:1' >"$FAKE/get-deployments" && expect 11 smoke "no Deployment mpi-operator"
for name in pytorchjob-static pytorchjob-elastic tfjob-ps; do
  sound && expect 0 "$source/k8s/peers/$name.yaml" "nothing is missing"
  sound && rm "$FAKE"/get-crd-*jobs.kubeflow.org && expect 10 "$source/k8s/peers/$name.yaml" "training-operator"
done
sound && rm "$FAKE/get-persistentvolumeclaim-fsx-claim" &&
  expect 14 "$source/k8s/peers/pytorchjob-static.yaml" "no claim fsx-claim"
sound && lines 'mpi-operator\t0\tmpi-operator:v0.8.2' >"$FAKE/get-deployments" && expect 11 smoke "no ready pod"
sound && rm "$FAKE/get-namespace-default" && expect 13 smoke "create namespace default"
sound && rm "$FAKE/get-persistentvolumeclaim-pv-fsx" && expect 14 mask-rcnn "no claim pv-fsx"
sound && echo 'Bound ["ReadWriteOnce"] gp3' >"$FAKE/get-persistentvolumeclaim-pv-fsx" &&
  expect 14 mask-rcnn ReadWriteMany
sound && echo 'Bound ["ReadWriteOnce"] gp3' >"$FAKE/get-persistentvolumeclaim-workdisk" &&
  expect 0 resnet50-cpu-single-pvc
sound && echo 'Pending ["ReadWriteMany"] ' >"$FAKE/get-persistentvolumeclaim-pv-fsx" && expect 14 mask-rcnn "is Pending"
sound && echo 'Pending ["ReadWriteMany"] fsx-sc' >"$FAKE/get-persistentvolumeclaim-pv-fsx" &&
  expect 15 mask-rcnn "storage class fsx-sc does not exist"
sound && echo 'Pending ["ReadWriteMany"] fsx-sc' >"$FAKE/get-persistentvolumeclaim-pv-fsx" &&
  echo WaitForFirstConsumer >"$FAKE/get-storageclass-fsx-sc" && expect 0 mask-rcnn "when the first pod uses it"
for overlay in resnet50-cpu-multi-nfs resnet50-cpu-single-nfs; do
  sound && expect 0 $overlay "nothing is missing"
  sound && echo baseline >"$FAKE/get-namespace-default" && expect 0 $overlay "nothing is missing"
  sound && echo restricted >"$FAKE/get-namespace-default" &&
    expect 21 $overlay "refuses the NFS volume" "kubectl label namespace default --overwrite"
done
sound && echo restricted >"$FAKE/get-namespace-default" && expect 0 resnet50-cpu-multi-pvc "nothing is missing"
# smoke: two workers with 1 core and 2 GiB, and a launcher with half a core and 1 GiB.
quota() { lines "team\thard\t$1\t$2" "team\tused\t$1\t$3" >"$FAKE/get-resourcequota"; }
sound && quota requests.cpu 3 500m && expect 0 smoke
sound && quota requests.cpu 3 501m && expect 16 smoke "the quota team allows requests.cpu 3, of which 501m are in use"
sound && quota limits.memory 5Gi 0 && expect 0 smoke
sound && quota limits.memory 5119Mi 0 && expect 16 smoke "the job needs 5Gi"
sound && quota pods 10 8 && expect 16 smoke "the job needs 3"
sound && quota requests.nvidia.com/gpu 15 0 && expect 16 mask-rcnn "the job needs 16"
sound && quota requests.nvidia.com/gpu 16 0 && expect 0 mask-rcnn
sound && quota requests.cpu 2499m 0 && expect 16 trainjob "the job needs 2.5"
sound && quota requests.cpu 2499m 0 && expect 16 no-operator "the job needs 2.5"
sound && rm "$FAKE/get-localqueue-training" && expect 17 kueue "the queue training"
sound && rm "$FAKE/get-secret-no-operator-ssh" && expect 18 no-operator "k8s/ssh-secret.sh no-operator default"
sound && touch "$FAKE/fail-get-nodes" && expect 0 smoke "you may not list nodes" "can pull the image dtrain-cpu:0.2.0 was not checked"
# Weights. The script of the pod runs here with a folder in place of the claim.
weights=data/coco2017/pretrained-models/ImageNet-R50-AlignPadding.npz
claim=$work/claim
mkdir -p "$claim/${weights%/*}"
look() {  # runs the script of the created pod on the claim, and answers with its output
  "$source/k8s/preflight.sh" mask-rcnn >/dev/null 2>&1
  awk '/^        - \|/ { inside = 1; next } /^        - sh/ { inside = 0 } inside' "$FAKE/manifest" >"$work/script"
  sh -c "$(cat "$work/script")" sh "$claim/$weights" | sed "s#$claim#/data#" >"$work/said"
  cp "$work/said" "$FAKE/logs-pod_preflight-x"
}
sound && look && expect 20 mask-rcnn "the job's weights are missing: $weights of the claim pv-fsx"
for line in 'namespace: default' 'supplementalGroups: \[1000\]' 'image: dtrain-cuda:' "\"/data/$weights\"" \
  '{name: data-1, mountPath: /data, readOnly: true}' 'claimName: pv-fsx, readOnly: true'; do
  grep -q "$line" "$FAKE/manifest" || { echo "the pod lacks $line"; failures=$((failures + 1)); }
done
grep -q '^--request-timeout=20s delete pod/preflight-x --namespace default' "$FAKE/calls" ||
  { echo "the pod was not deleted"; failures=$((failures + 1)); }
: >"$claim/$weights"
sound && look && expect 20 mask-rcnn "are empty: $weights"
echo weights >"$claim/$weights"
sound && look && expect 0 mask-rcnn "nothing is missing"
record="${weights##*/} 8 $(sha256sum "$claim/$weights" | cut -d ' ' -f 1)"
printf 'other.npz 1 0\n%s\n' "$record" >"$claim/${weights%/*}/weights.lock"
sound && look && expect 0 mask-rcnn "nothing is missing"
echo altered >"$claim/$weights"
sound && look && expect 20 mask-rcnn "$weights of the claim pv-fsx differ from weights.lock"
sound && echo Pending >"$FAKE/get-pod_preflight-x" && DTRAIN_PROBE_SECONDS=0 expect 0 mask-rcnn "was not checked"
sound && echo 'Pending ContainersNotReady ImagePullBackOff' >"$FAKE/get-pod_preflight-x" &&
  expect 0 mask-rcnn "was not checked: pod/preflight-x: Pending ContainersNotReady ImagePullBackOff"
sound && : >"$FAKE/logs-pod_preflight-x" && expect 0 mask-rcnn "was not checked: its pod gave no answer"
sound && touch "$FAKE/fail-create" && expect 0 mask-rcnn "was not checked"
sound && "$source/k8s/preflight.sh" --read-only mask-rcnn >/dev/null 2>&1 && expect 0 smoke
! grep -q 'create' "$FAKE/calls" || { echo "--read-only creates a pod"; failures=$((failures + 1)); }
sed 's#value: /data/data/coco2017#value: /other/coco2017#' "$source/k8s/rendered/mask-rcnn.yaml" >"$work/elsewhere.yaml"
sound && expect 0 "$work/elsewhere.yaml" "weights /other/coco2017/pretrained-models/ImageNet-R50-AlignPadding.npz are not on a claim"
# shellcheck disable=SC2016  # not to be expanded
sed 's#BACKBONE.WEIGHTS=.*#--load\n            - "/fsx/a$(whoami).npz"#' "$source/k8s/rendered/mask-rcnn.yaml" >"$work/forged.yaml"
sound && expect 0 "$work/forged.yaml" 'are not on a claim'
# An empty name is ignored.
{ cat "$source/k8s/peers/pytorchjob-static.yaml" && printf '      namespace: ""\n      claimName:\n'; } >"$work/empty.yaml"
sound && expect 0 "$work/empty.yaml"
# Names do not become options of kubectl.
{ cat "$source/k8s/peers/pytorchjob-static.yaml" && echo '      claimName: --server=https://elsewhere.test'; } >"$work/forged.yaml"
sound && expect 1 "$work/forged.yaml" "claimName is --server=https://elsewhere.test: expected lower-case letters"
[ ! -e "$FAKE/calls" ] || ! grep -q elsewhere "$FAKE/calls" ||
  { echo "preflight.sh gave a name to kubectl as an option"; failures=$((failures + 1)); }
# Faults of the manifest itself.
sed 's/sizeLimit: 1Gi/sizeLimit: 2Gi/' "$source/k8s/rendered/smoke.yaml" >"$work/shm.yaml"
sound && expect 1 "$work/shm.yaml" "MPIJob smoke Worker: volumes in memory (SHM) of 2.0625Gi, expected less than the memory limit 2Gi"
long=$(printf 'a%.0s' {1..46})
sed "s/no-operator/$long/" "$source/k8s/rendered/no-operator.yaml" >"$work/long.yaml"
sound && expect 1 "$work/long.yaml" "the StatefulSet $long-worker has 53 characters, expected at most 52"
# A manifest in another style of YAML, as Helm writes it.
kubectl label --local -f "$source/k8s/rendered/smoke.yaml" none- -o json | sed -n '/^{/,$p' >"$work/lines.json"
sed 's/^{$/---\n{/' "$work/lines.json" >"$work/style.yaml"
sound && quota pods 10 8 && expect 16 "$work/style.yaml" "the job needs 3"
# The first missing prerequisite determines the exit code; all are printed.
sound && rm "$FAKE/get-crd-mpijobs.kubeflow.org" "$FAKE/get-namespace-default" && expect 10 smoke "no namespace default"

# run.sh changes the overlay, runs preflight.sh, deletes the old job, and applies the result.
cp -r "$source/k8s" "$work/k8s"
sound
"$work/k8s/run.sh" smoke WORKERS=5 --max_bytes=1K >/dev/null 2>&1 ||
  { echo "run.sh failed"; failures=$((failures + 1)); }
told=$(grep -c '^delete -f .*--cascade=foreground --wait\|^apply -f' "$FAKE/calls")
order=$(grep -n '^delete\|^apply' "$FAKE/calls" | cut -d : -f 2 | cut -d ' ' -f 1 | tr '\n' ' ')
if [ "$told" != 2 ] || [ "$order" != "delete apply " ] || ! grep -q -- '- --max_bytes=1K' "$FAKE/manifest" ||
  ! grep -q 'replicas: 5' "$FAKE/manifest"; then
  echo "unexpected kubectl calls of run.sh:"
  cat "$FAKE/calls"
  failures=$((failures + 1))
fi
sound && rm "$FAKE/get-namespace-default"
"$work/k8s/run.sh" smoke >/dev/null 2>&1
code=$?
if [ $code != 13 ] || grep -q '^delete\|^apply' "$FAKE/calls"; then
  echo "run.sh exited with $code although preflight.sh failed"
  failures=$((failures + 1))
fi
# Neither a missing prerequisite nor an invalid value changes the overlay, and nothing is left beside it.
cp -r "$work/k8s/overlays" "$work/before"
"$work/k8s/run.sh" smoke WORKERS=3 --max_bytes=4K >/dev/null 2>&1
[ $? = 13 ] || { echo "run.sh submitted a job without a namespace"; failures=$((failures + 1)); }
sound
said=$("$work/k8s/run.sh" smoke WORKERS=0 2>&1)
[[ $? = 1 && $said == *"WORKERS='0': expected a number from 1"* ]] ||
  { echo "run.sh accepted WORKERS=0: $said"; failures=$((failures + 1)); }
said=$("$work/k8s/run.sh" nonsense 2>&1)
[[ $? = 1 && $said == *"there is no overlay nonsense"* ]] || { echo "run.sh nonsense: $said"; failures=$((failures + 1)); }
diff -r "$work/before" "$work/k8s/overlays" || { echo "run.sh changed the overlay"; failures=$((failures + 1)); }

# ssh-secret.sh creates a key, but keeps an existing one.
sound && rm "$FAKE/get-secret-no-operator-ssh"
"$source/k8s/ssh-secret.sh" no-operator >/dev/null 2>&1
grep -q '^create secret generic no-operator-ssh ' "$FAKE/calls" ||
  { echo "ssh-secret.sh created no secret"; failures=$((failures + 1)); }
sound && "$source/k8s/ssh-secret.sh" no-operator >/dev/null 2>&1
! grep -q '^create\|^delete' "$FAKE/calls" || { echo "ssh-secret.sh replaced a secret"; failures=$((failures + 1)); }

[ $failures = 0 ] || exit 1
echo "all as expected"
