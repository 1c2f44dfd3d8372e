# shellcheck shell=bash disable=SC2154  # variables of k8s/preflight.sh
# Nodes for the pods of a job, for k8s/preflight.sh: those of the cluster, and those that an autoscaler can add.

# The oldest NVIDIA driver of each image: k8s/images/README.md.
drivers='dtrain-cuda 580
dtrain-cuda12 525
dtrain-efa 580'

# Writes $work/nodes in the format of fit.awk; lines image NAME are for preflight-images.sh. Empty if nodes are forbidden.
read_nodes() {
  # shellcheck disable=SC2016  # the dollars are the template's
  ask get nodes -o go-template='{{range .items}}node{{"\t"}}{{.metadata.name}}
{{range $key, $value := .metadata.labels}}label{{"\t"}}{{$key}}{{"\t"}}{{$value}}
{{end}}{{range $key, $value := .status.allocatable}}has{{"\t"}}{{$key}}{{"\t"}}{{$value}}
{{end}}{{range .spec.taints}}taint{{"\t"}}{{.key}}{{"\t"}}{{or .value ""}}{{"\t"}}{{.effect}}
{{end}}{{range .status.images}}{{range .names}}image{{"\t"}}{{.}}
{{end}}{{end}}{{end}}' >"$work/nodes"
}
add_drivers() {
  awk -F '\t' -v drivers="$drivers" '
    BEGIN {
      n = split(drivers, line, "\n")
      for (i = 1; i <= n; i++) {
        split(line[i], part, " ")
        oldest[part[1]] = part[2]
      }
    }
    $2 == "need" && $3 == "nvidia.com/gpu" && $4 > 0 { gpu[$1] }
    $2 == "image" {
      name = $3
      sub(/.*\//, "", name)
      sub(/[:@].*/, "", name)
      if (name in oldest) need[$1] = oldest[name]
    }
    END { for (pod in need) if (pod in gpu) print pod "\tdriver\t" need[pod] }' "$work/pods" >"$work/drivers"
  cat "$work/drivers" >>"$work/pods"
}
fit() {  # NODES
  awk -v known=" $(cut -d , -f 1 "$here/instance-types.csv" | paste -sd ' ') " -f "$here/lib/quantities.awk" \
    -f "$here/lib/fit.awk" "$work/pods" "$1"
}
needs() {  # POD RESOURCE, or the beginning of its name
  awk -F '\t' -v pod="$1" -v name="$2" '
    $1 == pod && $2 == "need" && $4 > 0 && index($3, name) == 1 { found = 1 }
    END { exit !found }' "$work/pods"
}

# A resource that no node has yet appears only if its device plugin runs on new nodes. EKS Auto Mode has its own.
has_plugin() {  # POD RESOURCE PATTERN-OF-DAEMONSETS
  local sets
  needs "$1" "$2" || return 0
  ! grep -q "^has"$'\t'"$2"$'\t[1-9]' "$work/nodes" || return 0
  ! grep -qs $'^class\teks.amazonaws.com$' "$work/pools" || return 0
  sets=$(ask get daemonsets --all-namespaces -o name)
  ! grep -q "$3" <<<"$sets" || return 0
  lacks 12 "$1: no node has $2, and there is no device plugin (${3%%\\*}): k8s/cluster/install.sh"
  return 1
}

check_nodes() {
  local pod state node reason expected unplaced=()
  if ! read_nodes; then
    note "you may not list nodes: whether a node has room for each pod was not checked"
    return
  fi
  add_drivers
  while IFS=$'\t' read -r pod state node reason expected; do
    case $state in
      driver)
        lacks 12 "$pod: the NVIDIA driver of the node $node has version $reason; the image needs $expected or later" ;;
      no) unplaced+=("$pod"$'\t'"${node:+$node: $reason}") ;;
    esac
  done < <(fit "$work/nodes")
  if [ -s "$work/drivers" ] && ! grep -q '^label'$'\t''nvidia.com/cuda.driver' "$work/nodes"; then
    note "the GPU driver was not checked: no node has the labels of GPU Feature Discovery"
  fi
  [ ${#unplaced[@]} = 0 ] || check_unplaced
}
# Pods for which the cluster has no node.
check_unplaced() {
  local line pod nearest state node reason
  read_autoscalers
  fit "$work/addable" >"$work/added"
  for line in "${unplaced[@]}"; do
    IFS=$'\t' read -r pod nearest <<<"$line"
    has_plugin "$pod" nvidia.com/gpu 'nvidia-device-plugin\|gpu-operator' || continue
    has_plugin "$pod" vpc.amazonaws.com/efa 'efa-k8s-device-plugin\|efa' || continue
    IFS=$'\t' read -r _ state node reason < <(awk -F '\t' -v pod="$pod" '$1 == pod' "$work/added")
    if [ "$state" = ok ]; then
      note "$pod: no node has room now${nearest:+ ($nearest)}: the autoscaler must add one ($node)"
    elif [ -n "$unreadable" ] && ! needs "$pod" vpc.amazonaws.com/efa && ! needs "$pod" hugepages-; then
      note "$pod: no node has room now${nearest:+ ($nearest)}; whether the autoscaler can add one was not checked: $unreadable"
    else
      lacks 12 "$pod: no node has room${nearest:+ ($nearest)}, and $(why_none "$node" "$reason")"
    fi
  done
}
# Why no autoscaler adds a node. Devices and huge pages are not implied by an instance type, so that a node group that
# cannot be read must not be assumed to have them.
why_none() {  # NEAREST REASON
  if [ -n "$unreadable" ]; then
    echo "an autoscaler adds nodes with EFA devices and huge pages only if it is configured for them," \
      "which could not be checked: $unreadable"
  elif [ -z "$1" ]; then
    echo "no autoscaler with node groups was found"
  else
    echo "no autoscaler can add one; nearest is $1: $2. k8s/cluster/README.md lists what autoscalers need for EFA"
  fi
}
