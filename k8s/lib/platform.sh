# shellcheck shell=bash disable=SC2154  # variables of k8s/set.sh
# Optional settings of an overlay: what a platform adds to the pods, and components. An overlay has their parameters only
# if they are set; NAME= removes one. Source it in k8s/set.sh.

# Parameters that become JSON patches of all pods in the file pods.yaml of the overlay.
pod_parameters=(PRIORITY_CLASS IMAGE_PULL_SECRETS SERVICE_ACCOUNT TOLERATIONS AFFINITY TOPOLOGY_SPREAD LABELS ANNOTATIONS
  ENV EPHEMERAL_STORAGE)
# Parameters that add a component.
declare -A component_for=([QUEUE]=kueue [TOPOLOGY]=topology [MONITORING]=metrics [SPOT]=spot [ISTIO]=istio)
monitored='^dtrain-(cnn-benchmarks|mask-rcnn|train-imagenet|imagenet-main)$'

# Some overlays have one of these parameters, such as SERVICE_ACCOUNT, in their own replacements: it is not optional there.
is_optional() {  # NAME
  [[ "${kustomized[*]}" != *"fieldPath: data.$1}"* && " ${pod_parameters[*]} ${!component_for[*]} EFA " == *" $1 "* ]]
}
# The kind of object that the overlay's command patches.
kind_of_overlay() { printf '%s\n' "${kustomized[@]}" | sed -n '/- path: command.yaml/{n;s/.*kind: \([A-Za-z]*\).*/\1/p;q}'; }

set_optional() {  # NAME VALUE
  local component=${component_for[$1]:-} kind
  kind=$(kind_of_overlay)
  if [ "$1" = EFA ]; then
    set_efa "$2"
  elif [ -n "$component" ]; then
    set_component "$1" "$2" "$component" "$kind"
  elif [ -z "$kind" ]; then
    die "the overlay $overlay has no pods, and no parameter $1"
  elif [ "$kind" = TrainJob ] && ! grep -q '^kind: TrainingRuntime' "$folder"/*.yaml; then
    die "$1: the pods of $overlay are those of its ClusterTrainingRuntime, k8s/cluster/training-runtime.yaml"
  fi
  if [ -z "$2" ]; then
    remove_parameter "$1"
  elif line_of "$1" >/dev/null; then
    set_value "$1" "$2"
  else
    lines+=("  $1: \"$2\"")
  fi
}

set_component() {  # NAME VALUE COMPONENT KIND
  [ -n "$2" ] || { remove_component "$3" && return; }
  component_of parameters >/dev/null || die "the overlay $overlay does not support $1"
  case $1 in
    SPOT | TOPOLOGY) [ "$4" = MPIJob ] || die "$1 needs an MPIJob, but $overlay is a $4" ;;
    QUEUE) [[ " ${kustomized[*]} " == *" [../../base"* ]] || die "QUEUE: Kueue cannot start the objects of $overlay as one job" ;;
    MONITORING)
      if [ "$first" = 0 ] || [[ ! $(item $((first - 1))) =~ $monitored ]]; then
        die "MONITORING: the program of $overlay has no live metrics"
      fi
      ;;
  esac
  insert_component "$3"
}
insert_component() {  # NAME, before the component parameters, which is the last one
  local at
  if component_of "$1" >/dev/null; then return; fi
  at=$(component_of parameters)
  kustomized=("${kustomized[@]:0:at}" "${kustomized[at]%parameters}$1" "${kustomized[@]:at}")
}

set_efa() {  # COUNT
  component_of gpu >/dev/null || die "the overlay $overlay has no GPUs, and no parameter EFA"
  line_of WORKERS >/dev/null || die "EFA: $overlay has a single pod"
  if [ -z "$1" ]; then
    remove_component efa
    [[ ! $(value_of IMAGE) =~ (^|/)dtrain-efa: ]] || set_image cuda
  else
    add_component efa "$(component_of instance-type >/dev/null && echo instance-type || echo gpu)"
    set_image efa
  fi
}

# Flags of live metrics. The program behind a front end takes dtrain's flags after `--`.
metrics_flags=("metrics_port 9400" "metrics_address 0.0.0.0")
set_metrics_flags() {
  local flag at name value
  for flag in "${metrics_flags[@]}"; do
    read -r name value <<<"$flag"
    if at=$(index_of_assignment "--$name"); then
      written[at]=$(quoted "--$name=$value")
    elif index_of -- >/dev/null; then
      insert ${#written[@]} "--$name=$value"
    else
      set_flag "$name" "$value"
    fi
  done
}
remove_metrics_flags() {
  local flag at
  for flag in "${metrics_flags[@]}"; do
    at=$(index_of_assignment "--${flag% *}") || continue
    written=("${written[@]:0:at}" "${written[@]:at+1}")
  done
}

# Splits KEY=VALUE,KEY=VALUE at commas that precede a key into the array `parts`. Values may contain other commas.
split_pairs() {
  local word
  parts=()
  while IFS= read -rd , word || [ -n "$word" ]; do
    if [ ${#parts[@]} != 0 ] && [[ ! $word =~ ^[A-Za-z0-9_./-]+= ]]; then parts[-1]+=,$word; else parts+=("$word"); fi
  done < <(printf %s "$1")
}
yaml() { echo "'${1//\'/\'\'}'"; }
add() { patch+=("- {op: add, path: $1, value: $2}"); }

# Tolerations in the notation of kubectl taint: KEY[=VALUE][:EFFECT].
add_tolerations() {  # POD TEXT
  local one key effect operator
  IFS=, read -ra parts <<<"$2"
  for one in "${parts[@]}"; do
    key=${one%%:*} effect='' operator='operator: Exists'
    [[ $one != *:* ]] || effect=", effect: ${one##*:}"
    [[ $key != *=* ]] || operator="operator: Equal, value: $(yaml "${key#*=}")"
    add "$1/spec/tolerations/-" "{key: $(yaml "${key%%=*}"), $operator$effect}"
  done
}
# Required node affinity: KEY=VALUE[:VALUE...], all of which a node must match.
add_affinity() {  # POD TEXT
  local one expressions='' terms=0 place=$1/spec/affinity
  component_of spot >/dev/null && case $1 in */Worker/*) terms=2 ;; *) terms=1 ;; esac
  IFS=, read -ra parts <<<"$2"
  for one in "${parts[@]}"; do
    one="{key: $(yaml "${one%%=*}"), operator: In, values: [$(yaml "${one#*=}" | sed "s/:/', '/g")]}"
    expressions+=", $one"
    for ((i = 0; i < terms; i++)); do
      add "$place/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/$i/matchExpressions/-" "$one"
    done
  done
  [ $terms != 0 ] || add "$place" "{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [${expressions#, }]}]}}}"
}
# Spreads the pods of each job and role: KEY[:ScheduleAnyway|:DoNotSchedule].
add_topology_spread() {  # POD TEXT
  local one all=''
  IFS=, read -ra parts <<<"$2"
  for one in "${parts[@]}"; do
    [[ $one == *:* ]] || one+=:ScheduleAnyway
    all+=", {maxSkew: 1, topologyKey: $(yaml "${one%%:*}"), whenUnsatisfiable: ${one##*:},"
    all+=" labelSelector: {matchLabels: {app.kubernetes.io/part-of: dtrain}},"
    all+=" matchLabelKeys: [app.kubernetes.io/instance, app.kubernetes.io/component]}"
  done
  add "$1/spec/topologySpreadConstraints" "[${all#, }]"
}
add_map() {  # PLACE TEXT: labels or annotations
  local one key
  split_pairs "$2"
  for one in "${parts[@]}"; do
    key=${one%%=*}
    add "$1/${key//\//\~1}" "$(yaml "${one#*=}")"
  done
}
add_env() {  # POD TEXT
  local one
  split_pairs "$2"
  for one in "${parts[@]}"; do
    add "$1/spec/containers/0/env/-" "{name: ${one%%=*}, value: $(yaml "${one#*=}")}"
  done
}

add_settings() {  # POD, the path of a pod template
  local name value part parts i
  for name in "${pod_parameters[@]}"; do
    if ! is_optional "$name" || ! value=$(value_of "$name"); then continue; fi
    check_value "$name" "$value"
    case $name in
      PRIORITY_CLASS) add "$1/spec/priorityClassName" "$(yaml "$value")" ;;
      IMAGE_PULL_SECRETS)
        IFS=, read -ra parts <<<"$value"
        part=$(printf ', {name: %s}' "${parts[@]}")
        add "$1/spec/imagePullSecrets" "[${part#, }]"
        ;;
      SERVICE_ACCOUNT) add "$1/spec/serviceAccountName" "$(yaml "$value")" ;;
      TOLERATIONS) add_tolerations "$1" "$value" ;;
      AFFINITY) add_affinity "$1" "$value" ;;
      TOPOLOGY_SPREAD) add_topology_spread "$1" "$value" ;;
      LABELS) add_map "$1/metadata/labels" "$value" ;;
      ANNOTATIONS) add_map "$1/metadata/annotations" "$value" ;;
      ENV) add_env "$1" "$value" ;;
      EPHEMERAL_STORAGE)
        add "$1/spec/containers/0/resources/requests/ephemeral-storage" "$value"
        add "$1/spec/containers/0/resources/limits/ephemeral-storage" "$value"
        ;;
    esac
  done
}
# The patch of all pods, in the array `patch`.
make_pods() {
  local pod pods=(/spec/template)
  patch=()
  case $(kind_of_overlay) in
    MPIJob) pods=(/spec/mpiReplicaSpecs/{Launcher,Worker}/template) ;;
    TrainJob) pods=(/spec/template/spec/replicatedJobs/{0,1}/template/spec/template) ;;
  esac
  for pod in "${pods[@]}"; do add_settings "$pod"; done
}

# Variables that the manifests set: Kubernetes would use the last of two.
check_env() {
  local one name text
  is_optional ENV && text=$(value_of ENV) || return 0
  split_pairs "$text"
  for one in "${parts[@]}"; do
    name=${one%%=*}
    [[ ! $name =~ PASSWORD|SECRET|TOKEN|ACCESS_KEY ]] || die "ENV: $name would be readable in the pod's specification"
    ! grep -qhE "\{name: $name, value" "$here"/base*/*.yaml "$here"/components/*/*.yaml "$folder"/[!p]*.yaml ||
      die "ENV: $name is set by the manifests of dtrain"
    [ "$(printf '%s\n' "${parts[@]%%=*}" | grep -cx -- "$name")" = 1 ] || die "ENV: $name is given twice"
  done
}
# Adds or removes the patch in kustomization.yaml.
reference_pods() {
  local i at='' kind target
  kind=$(kind_of_overlay)
  case $kind in
    TrainJob) target=TrainingRuntime ;;
    Job) target='Job|StatefulSet' ;;
    *) target=$kind ;;
  esac
  for i in "${!kustomized[@]}"; do [ "${kustomized[i]}" != "  - path: pods.yaml" ] || at=$i; done
  if [ ${#patch[@]} = 0 ] && [ -n "$at" ]; then
    kustomized=("${kustomized[@]:0:at}" "${kustomized[@]:at+2}")
  elif [ ${#patch[@]} != 0 ] && [ -z "$at" ]; then
    for i in "${!kustomized[@]}"; do [ "${kustomized[i]}" != "  - path: command.yaml" ] || at=$i; done
    kustomized=("${kustomized[@]:0:at}" "  - path: pods.yaml" "    target: {kind: $target}" "${kustomized[@]:at}")
  fi
}
