# shellcheck shell=bash disable=SC2154  # source is set by tests
# A cluster that answers from files, for tests of k8s/preflight.sh: source it with `source` set to the source folder.
here=$source/tests/k8s
REAL_KUBECTL=$(command -v kubectl) || { echo "SKIPPED: there is no kubectl"; exit 0; }
kubectl kustomize "$source/k8s/base" >/dev/null 2>&1 || { echo "SKIPPED: this kubectl knows no components"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export REAL_KUBECTL FAKE=$work/answers
mkdir "$work/bin" "$FAKE.labelled"
cp "$here/kubectl_recorder" "$work/bin/kubectl"
# aws and skopeo print the file named after their words without options, on stderr with code 1 if it ends in .error.
cat >"$work/bin/aws" <<'SH'
#!/usr/bin/env bash
echo "${0##*/} $*" >>"$FAKE/calls"
name=${0##*/}
while [ $# != 0 ]; do
  case $1 in
    --nodegroup-name | --repository-name) name+=-${2//\//_}; shift ;;
    --raw) ;;
    --filters) while [[ ${2:-} == Name=* ]]; do shift; done ;;
    --*) shift ;;
    *) name+=-${1//\//_} ;;
  esac
  shift
done
if [ -f "$FAKE/$name.error" ]; then cat "$FAKE/$name.error" >&2; exit 1; fi
cat "$FAKE/$name" 2>/dev/null || { echo "no answer $name" >&2; exit 1; }
SH
chmod +x "$work/bin/aws"
cp "$work/bin/aws" "$work/bin/skopeo"
export PATH=$work/bin:$PATH
failures=0
lines() { printf '%b\n' "$@"; }  # \t is a tab

# A cluster without missing prerequisites.
sound() {
  rm -rf "$FAKE"
  mkdir "$FAKE"
  cd "$FAKE" || exit
  echo '{}' >get-raw-_version
  lines 'v2beta1 v1alpha1 ' '"launcherCreationPolicy" "mpiImplementation" "runLauncherAsWorker" "runPolicy"
"slotsPerWorker" "sshAuthMountPath" "runtimeRef" "trainer"' |
    tee get-crd-mpijobs.kubeflow.org >get-crd-trainjobs.trainer.kubeflow.org
  echo 'v1 ' | tee get-crd-pytorchjobs.kubeflow.org >get-crd-tfjobs.kubeflow.org
  lines 'coredns\t1\tcoredns:1' 'mpi-operator\t1\tmpi-operator:v0.8.2' 'training-operator\t1\ttraining-operator:v1' \
    'kubeflow-trainer-controller-manager\t1\ttrainer:v2' >get-deployments
  node g6e.48xlarge cpu=192 memory=1500Gi nvidia.com/gpu=8 >get-nodes
  : >get-daemonsets
  touch get-namespace-default get-resourcequota
  local claim name
  for claim in workdisk pv-fsx fsx-claim nfs-external; do
    echo 'Bound ["ReadWriteMany"] efs-sc' >"get-persistentvolumeclaim-$claim"
  done
  echo True training >get-localqueue-training
  for name in cpu memory nvidia.com/gpu; do lines "covered\t$name" "quota\t$name\t8Ti"; done >get-clusterqueue-training
  echo secret/no-operator-ssh >get-secret-no-operator-ssh
  # The pod that looks for weights.
  echo pod/preflight-x >create
  echo 'Succeeded ' >get-pod_preflight-x
  echo checked >logs-pod_preflight-x
  cd - >/dev/null || exit
}
# A node as the template of preflight.sh prints it, with all images of the overlays.
node() {  # INSTANCE-TYPE RESOURCE=QUANTITY...
  local one
  lines "node\tip-$1" "label\tnode.kubernetes.io/instance-type\t$1"
  for one in "${@:2}"; do lines "has\t${one%=*}\t${one##*=}"; done
  for one in dtrain-cpu dtrain-cuda dtrain-cuda12 dtrain-efa; do lines "image\tdocker.io/library/$one:0.2.0"; done
  while IFS= read -r one; do lines "image\tdocker.io/$one"; done < <(
    sed -n 's/^ *image: //p' "$source"/k8s/peers/*.yaml | grep '^[a-z]*/' | sort -u)
}
# CODE OVERLAY|FILE [TEXT...]: expected exit code and parts of the output.
expect() {
  local said code text manifest=$source/k8s/rendered/$2.yaml
  [ -f "$manifest" ] || manifest=$2
  said=$("$source/k8s/preflight.sh" "$manifest" 2>&1)
  code=$?
  for text in "" "${@:3}"; do
    [ $code != "$1" ] || [[ $said != *"$text"* ]] || continue
    echo "preflight $2: exit code $code, expected $1 and '$text':"
    echo "$said"
    failures=$((failures + 1))
    return
  done
}
