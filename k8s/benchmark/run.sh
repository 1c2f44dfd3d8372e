#!/usr/bin/env bash
# Runs a benchmark plan: creates the cluster and its add-ons, stages the data, runs the experiments one after the other,
# copies configuration, logs and metrics to S3, prints a table, and deletes everything that it created.
#     k8s/benchmark/run.sh [--check] PLAN [FOLDER]
# k8s/benchmark/plan.example documents a plan. Results are written to FOLDER (default NAME-DATE), which must not
# exist, and to S3 under result_path/FOLDER. --check only validates the plan and estimates its cost. Results are
# copied and created resources deleted after an error, Ctrl-C or SIGTERM, too; both signals are ignored meanwhile.
# Existing resources are not touched. Credentials are found by the tools. A new cluster gets a separate temporary
# kubeconfig. Needs kubectl and aws, and eksctl for a cluster.
# Exit codes: 0 all experiments succeeded; 1 usage, or an invalid plan; 3 an experiment failed or timed out; 4 an
# earlier step failed; 6 a tool is missing; 7 results could not be copied, or a created resource was not deleted; 130
# and 143 interrupted.
# shellcheck disable=SC2317  # traps call functions
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$(dirname "$here")")
say() { echo "run.sh: $*" >&2; }
die() {
  say "$2"
  exit "$1"
}
# shellcheck source=k8s/benchmark/plan.sh
. "$here/plan.sh"
# shellcheck source=k8s/lib/prices.sh
. "$root/k8s/lib/prices.sh"
# shellcheck source=k8s/benchmark/data.sh
. "$here/data.sh"

check=
if [ "${1:-}" = --check ]; then
  check=yes
  shift
fi
[[ $# =~ ^[12]$ ]] || die 1 "usage: k8s/benchmark/run.sh [--check] PLAN [FOLDER]"
read_plan "$1"
unreachable="$(value cluster): publicAccessCIDRs is the example 203.0.113.7/32: set the addresses with access to the \
API, including this machine's"
if [ -n "$check" ]; then
  ! has_example_address || say "note: $unreachable"
  echo "$1: ${#experiments[@]} experiments: ${experiments[*]}"
  print_cost
  exit
fi
! has_example_address || die 1 "$unreachable"
plan=$(realpath "$1")
results=${2:-$(value name)-$(date -u +%Y%m%d-%H%M%S)}
[ ! -e "$results" ] || die 1 "$results exists: choose another folder"
tools=(kubectl aws)
[ "$(value cluster)" = existing ] || tools+=(eksctl)
for tool in "${tools[@]}"; do command -v "$tool" >/dev/null || die 6 "$tool is not installed: k8s/tools/install.sh $tool"; done
mkdir -p "$results" || die 6 "$results cannot be created"
results=$(realpath "$results")
cp "$plan" "$results/plan"
AWS_REGION=$(value region)
export AWS_REGION AWS_DEFAULT_REGION=$AWS_REGION
cd "$root"

# Runs a step in the background, so that signals are handled at once; the step gets SIGTERM. Its output is a log file in
# the results.
child='' code=0 phase=starting private=''
step() {  # NAME COMMAND...
  local name=$1
  shift
  phase=$name
  say "$name: $*"
  "$@" >"$results/$name.log" 2>&1 &
  child=$!
  if ! wait "$child"; then
    child=''
    tail -n 5 "$results/$name.log" >&2
    die 4 "$name failed: $results/$name.log"
  fi
  child=''
}

# Resources to delete, newest last. They are added before they are created, since a step may fail half-way.
made=()
# File systems that Kubernetes has provisioned and, by their reclaim policy, keeps.
kept=()
# The CSI driver deletes a dynamically provisioned file system after its claim: waits for it, so that it does not
# outlive the cluster.
delete_storage() {  # MANIFEST
  local volume found policy handle driver volumes made_for=() fields
  fields='{.spec.persistentVolumeReclaimPolicy} {.spec.csi.volumeHandle} '
  fields+='{.metadata.annotations.pv\.kubernetes\.io/provisioned-by}'
  volumes=$(kubectl get -f "$1" --ignore-not-found \
    -o go-template='{{range .items}}{{with .spec}}{{with .volumeName}}{{.}} {{end}}{{end}}{{else}}{{with .spec}}{{with .volumeName}}{{.}} {{end}}{{end}}{{end}}') || return
  for volume in $volumes; do
    found=$(kubectl get pv "$volume" --ignore-not-found -o jsonpath="$fields") || return
    read -r policy handle driver <<<"$found"
    [ "$policy" != Delete ] || made_for+=("pv/$volume")
    [[ $policy != Retain || -z $driver ]] || kept+=("$handle of $driver")
  done
  kubectl delete -f "$1" --ignore-not-found --wait --timeout=10m || return
  [ ${#made_for[@]} = 0 ] || kubectl wait --for=delete "${made_for[@]}" --timeout=20m
}
tear_down() {
  local index what left=()
  for ((index = ${#made[@]} - 1; index >= 0; index--)); do
    what=${made[index]}
    say "tearing down: $what"
    case $what in
      cluster\ *)
        eksctl delete cluster -f "${what#* }" --wait --disable-nodegroup-eviction &&
          { aws logs delete-log-group --log-group-name "/aws/eks/$cluster_name/cluster" || true; }
        ;;
      storage\ *) delete_storage "${what#* }" ;;
      *) kubectl delete -f "${what#* }" --ignore-not-found --wait --timeout=10m ;;
    esac >>"$results/tear-down.log" 2>&1 || left+=("$what")
  done
  for what in ${kept[@]+"${kept[@]}"}; do
    say "kept, and costs money until you delete it: $what (RECLAIM_POLICY=Retain: k8s/storage/README.md)"
  done
  for what in ${left[@]+"${left[@]}"}; do say "not deleted: $what; see $results/tear-down.log"; done
  [ ${#left[@]} = 0 ]
}

finish() {
  local status=$1
  trap '' INT TERM
  trap - EXIT
  set +e
  if [ -n "$child" ]; then
    kill "$child" 2>/dev/null
    wait "$child" 2>/dev/null
  fi
  [ -z "$running" ] || end_experiment interrupted
  [ "$status" = 0 ] || say "$phase: ended with code $status; copying results and deleting created resources"
  print_table | tee "$results/table.txt"
  "$root/k8s/data/save-results.sh" "$results" "$(value result_path)/$(basename "$results")" ||
    { say "the results are still in $results: k8s/data/save-results.sh"; status=7; }
  tear_down || status=7
  [ -z "$private" ] || rm -rf "$private"
  exit "$status"
}

# Renders an experiment, a kustomization or a file, with the plan's image instead of dtrain's images.
render() {  # MANIFEST
  local image
  image=$(value image)
  if [ -d "$1" ]; then kubectl kustomize "$1"; else cat "$1"; fi |
    IMAGE=$image awk 'ENVIRON["IMAGE"] != "" && /^[- ]*image: .*dtrain-[a-z0-9]+[:@]/ {
      sub(/image: .*/, "image: ")
      $0 = $0 ENVIRON["IMAGE"]
    }
    { print }'
}
storage_manifest() { echo "$results/$(basename "$1" .yaml).yaml"; }
# One line per object: kind, namespace, name, true conditions, and component label.
states() {
  kubectl get -f "$1" --no-headers -o custom-columns='KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name,CONDITIONS:.status.conditions[?(@.status=="True")].type,COMPONENT:.metadata.labels.app\.kubernetes\.io/component'
}
jobs_of() { states "$1" | grep -E '^(Job|MPIJob|PyTorchJob|TFJob|TrainJob) '; }

save_logs() {  # FOLDER
  local kind namespace name label
  kubectl get -f "$1/manifest.yaml" -o yaml >"$1/objects.yaml" 2>/dev/null || true
  while read -r kind namespace name _; do
    case $kind in
      Job) label=job-name ;;
      TrainJob) label=jobset.sigs.k8s.io/jobset-name ;;
      *) label=training.kubeflow.org/job-name ;;
    esac
    kubectl logs --namespace "$namespace" --selector "$label=$name" --all-containers --prefix --tail=-1 \
      --ignore-errors --max-log-requests=512 >"$1/$kind-$name.log" 2>&1 || say "there are no logs of $kind $name"
  done < <(jobs_of "$1/manifest.yaml")
}
# Prints the group of the last match of PATTERN in the logs; exit code 1 without a match. The pattern is an argument,
# not code, and only printable ASCII of the logs reaches the terminal.
metric_of() {  # FOLDER PATTERN
  # shellcheck disable=SC2016  # its own arguments
  bounded 60 'set -o pipefail
    shopt -s nullglob
    logs=("$1"/*.log)
    [ ${#logs[@]} != 0 ] || exit 1
    match=$(grep -ahoE -e "$2" -- "${logs[@]}" | tail -n 1) || exit
    [[ $match =~ $2 ]] && printf "%s\n" "${BASH_REMATCH[1]}"' "$1" "$2" | LC_ALL=C tr -cd '[:print:]'
}
running='' began=0 rows=()
end_experiment() {  # OUTCOME
  local folder=$results/$running pattern metric=''
  save_logs "$folder"
  pattern=$(value "$running/metric")
  metric=$(metric_of "$folder" "${pattern:-total images/sec: ([0-9.]+)}") || [ $? = 1 ] ||
    say "$running: searching its logs for the metric exceeded 60 s or 1 GB"
  rows+=("$running"$'\t'"$1"$'\t'"$(($(date +%s) - began))"$'\t'"${metric:--}")
  [ "$1" = succeeded ] || code=3
  running=''
}
print_table() {
  printf '%-32s %-12s %8s  %s\n' experiment result seconds metric
  local row name outcome seconds metric
  for row in ${rows[@]+"${rows[@]}"}; do
    IFS=$'\t' read -r name outcome seconds metric <<<"$row"
    printf '%-32s %-12s %8s  %s\n' "$name" "$outcome" "$seconds" "$metric"
  done
}

run_experiment() {  # NAME
  local folder=$results/$1 minutes state
  minutes=$(value "$1/timeout")
  phase="experiment $1"
  mkdir "$folder"
  began=$(date +%s)
  render "$(value "$1/manifest")" >"$folder/manifest.yaml" || die 4 "$1: its manifest cannot be rendered"
  running=$1
  if [ -n "$(kubectl get -f "$folder/manifest.yaml" --ignore-not-found -o name)" ]; then
    say "$1: objects with these names exist and are not changed"
    end_experiment refused
    return
  fi
  made+=("experiment $folder/manifest.yaml")
  say "experiment $1"
  if ! kubectl apply -f "$folder/manifest.yaml" >"$folder/apply.txt" 2>&1; then
    tail -n 3 "$folder/apply.txt" >&2
    end_experiment refused
    return
  fi
  while :; do
    # Ignores our parameter server, a separate job that does not end.
    state=$(jobs_of "$folder/manifest.yaml" | grep -v ' server *$') || state=
    if [[ $state == *Failed* ]]; then
      end_experiment failed
      break
    elif [ -n "$state" ] && ! grep -qvE 'Succeeded|Complete' <<<"$state"; then
      end_experiment succeeded
      break
    elif [ $(($(date +%s) - began)) -ge $((${minutes:-60} * 60)) ]; then
      end_experiment timeout
      break
    fi
    sleep "${DTRAIN_POLL_SECONDS:-15}" &
    wait $!
  done
  # Frees the nodes for the next experiment.
  kubectl delete -f "$folder/manifest.yaml" --ignore-not-found --wait --timeout=10m >"$folder/delete.txt" 2>&1 ||
    say "$1 could not be deleted, and will be tried again at the end"
}

# Renders storage first: a missing parameter fails before anything is created.
read -ra storages <<<"$(value storage)"
for file in ${storages[@]+"${storages[@]}"}; do
  if ! render "$file" >"$(storage_manifest "$file")"; then
    rm -r "$results"
    die 1 "storage $file cannot be rendered: k8s/set.sh lists what is to be set"
  fi
done
while IFS= read -r line; do say "$line"; done < <(print_cost)
(check_data ${storages[@]+"${storages[@]}"}) || { code=$? && rm -r "$results" && exit $code; }
cluster=$(value cluster)
if [ "$cluster" != existing ]; then
  cluster_name=$(sed -nE '/^metadata:/,/^[^ ]/s/^  name: *"?([^" ]+)"?.*/\1/p' "$cluster" | head -n 1)
  if eksctl get cluster --name "$cluster_name" --region "$AWS_REGION" >/dev/null 2>&1; then
    die 1 "the cluster $cluster_name exists: use it with 'cluster = existing'"
  fi
  private=$(mktemp -d) || die 6 "no temporary folder could be created"
  export KUBECONFIG=$private/kubeconfig
fi
trap 'finish $?' EXIT
trap 'finish 130' INT
trap 'finish 143' TERM
if [ "$cluster" != existing ]; then
  made+=("cluster $cluster")
  cp "$cluster" "$results/cluster.yaml"
  nodes=$(value nodes)
  step cluster eksctl create cluster -f "$cluster" --kubeconfig "$KUBECONFIG" ${nodes:+--without-nodegroup}
  [ -z "$nodes" ] || step nodes eksctl create nodegroup -f "$cluster" "--include=$nodes"
  step install k8s/cluster/install.sh
fi
for file in ${storages[@]+"${storages[@]}"}; do
  manifest=$(storage_manifest "$file")
  existing=$(kubectl get -f "$manifest" --ignore-not-found -o name)
  if [ -n "$existing" ]; then
    say "$file: ${existing//$'\n'/, } exists and is not changed"
    continue
  fi
  made+=("storage $manifest")
  step "storage-$(basename "$file" .yaml)" kubectl apply -f "$manifest"
done
[ -z "$(value data)" ] || step data k8s/data/stage.sh "$(value data)" "$(value data_path)"
for experiment in "${experiments[@]}"; do run_experiment "$experiment"; done
phase=finished
exit "$code"
