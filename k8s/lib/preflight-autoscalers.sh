# shellcheck shell=bash disable=SC2034,SC2154  # variables of k8s/preflight.sh and preflight-nodes.sh
# Nodes that the cluster autoscaler and Karpenter can add, for k8s/preflight.sh, in the format of fit.awk. The rules are
# those of their documentation: k8s/cluster/README.md.

# Writes $work/addable; `unreadable` says why node groups are not in it.
read_autoscalers() {
  unreadable=
  : >"$work/addable"
  read_karpenter >>"$work/addable"
  read_cluster_autoscaler
}

# Karpenter: each NodePool with each instance type of the table that it allows. Huge pages are only in NodeOverlays, which
# have no effect without their feature gate, and none on NodePools of EKS Auto Mode (class eks.amazonaws.com).
read_karpenter() {
  local requirements='{{range .}}require{{"\t"}}{{.key}}{{"\t"}}{{.operator}}{{"\t"}}{{range .values}}{{.}} {{end}}
{{end}}'
  # shellcheck disable=SC2016  # the dollars are the template's
  ask get nodepools.karpenter.sh -o go-template='{{range .items}}pool{{"\t"}}{{.metadata.name}}
class{{"\t"}}{{.spec.template.spec.nodeClassRef.group}}
{{with .spec.template.metadata}}{{range $key, $value := .labels}}label{{"\t"}}{{$key}}{{"\t"}}{{$value}}
{{end}}{{end}}{{range .spec.template.spec.taints}}taint{{"\t"}}{{.key}}{{"\t"}}{{or .value ""}}{{"\t"}}{{.effect}}
{{end}}{{range $key, $value := .spec.limits}}limit{{"\t"}}{{$key}}{{"\t"}}{{$value}}
{{end}}{{with .spec.template.spec.requirements}}'"$requirements"'{{end}}{{end}}' >"$work/pools" 2>/dev/null
  [ -s "$work/pools" ] || return 0
  if [[ $(deployment_like karpenter) == *NodeOverlay=true* ]]; then
    # shellcheck disable=SC2016
    ask get nodeoverlays.karpenter.sh -o go-template='{{range .items}}overlay{{"\t"}}{{.metadata.name}}
{{range $key, $value := .spec.capacity}}has{{"\t"}}{{$key}}{{"\t"}}{{$value}}
{{end}}{{range .status.conditions}}{{if eq .type "Ready"}}ready{{"\t"}}{{.status}}
{{end}}{{end}}{{with .spec.requirements}}'"$requirements"'{{end}}{{end}}' >>"$work/pools" 2>/dev/null
  fi
  awk -f "$here/lib/instance-types.awk" -f "$here/lib/karpenter.awk" "$here/instance-types.csv" "$work/pools"
}

# The cluster autoscaler on AWS: the Auto Scaling groups that it discovers, with their tags.
read_cluster_autoscaler() {
  local deployment word region='' select=()
  deployment=$(deployment_like cluster-autoscaler)
  if [ -z "$deployment" ]; then
    [ -z "$(ask get configmap cluster-autoscaler-status --namespace kube-system --ignore-not-found -o name)" ] ||
      unreadable="the cluster's provider runs the cluster autoscaler"
    return 0
  fi
  while IFS= read -r word; do
    case $word in
      AWS_REGION=*) region=${word#*=} ;;
      --node-group-auto-discovery=asg:tag=*)
        while IFS= read -r word; do
          select+=("Name=tag-key,Values=${word%%=*}")
        done < <(tr , '\n' <<<"${word#*:tag=}") ;;
    esac
  done < <(tr '\t' '\n' <<<"$deployment")
  if [ ${#select[@]} = 0 ] || [ -z "$region" ]; then
    unreadable="the cluster autoscaler does not discover Auto Scaling groups of AWS by tags"
  elif ! command -v aws >/dev/null; then
    unreadable="the AWS CLI, which reads the node groups of the cluster autoscaler, is not installed: k8s/tools/install.sh aws"
  elif ! aws autoscaling describe-auto-scaling-groups --region "$region" --filters "${select[@]}" --output json \
    >"$work/groups.json" 2>"$work/error"; then
    unreadable="the node groups of the cluster autoscaler cannot be read: $(grep -v '^$' "$work/error" | tail -n 1)"
  else
    awk -f "$here/lib/json-lines.awk" "$work/groups.json" >"$work/groups"
    read_node_groups "$region" >>"$work/addable" < <(awk -f "$here/lib/instance-types.awk" \
      -f "$here/lib/auto-scaling-groups.awk" "$here/instance-types.csv" "$work/groups")
  fi
}
# Adds labels, taints and tags of EKS node groups, which the autoscaler also reads.
read_node_groups() {  # REGION
  local line key cluster group
  while IFS= read -r line; do
    printf '%s\n' "$line"
    IFS=$'\t' read -r key cluster group <<<"$line"
    [ "$key" = eks ] || continue
    aws eks describe-nodegroup --region "$1" --cluster-name "$cluster" --nodegroup-name "$group" --output json 2>/dev/null |
      awk -f "$here/lib/json-lines.awk" | awk -F '\t' '
        function rest(text) { sub(/^([^|]*\|){3}/, "", text); return text }
        $1 ~ /^0\|nodegroup\|labels\|/ { print "label\t" rest($1) "\t" $2 }
        sub(/^0\|nodegroup\|tags\|k8s.io\/cluster-autoscaler\/node-template\/resources\//, "", $1) { print "has\t" $1 "\t" $2 }
        $1 ~ /^0\|nodegroup\|taints\|[0-9]+\|key$/ { taint = $2 }
        $1 ~ /^0\|nodegroup\|taints\|[0-9]+\|value$/ { value = $2 }
        $1 ~ /^0\|nodegroup\|taints\|[0-9]+\|effect$/ {
          effect = $2 == "NO_SCHEDULE" ? "NoSchedule" : $2 == "NO_EXECUTE" ? "NoExecute" : "PreferNoSchedule"
          print "taint\t" taint "\t" value "\t" effect
        }'
  done
}
