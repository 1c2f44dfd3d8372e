# shellcheck shell=bash disable=SC2016,SC2154  # dollars of awk and of templates; variables of k8s/preflight.sh
# ResourceQuotas and Kueue queues, for k8s/preflight.sh.

# The requests of all pods against the remaining quota. An old job that still exists counts as used.
check_quotas() {
  local template line
  template='{{range .items}}{{$quota := .metadata.name}}{{range $name, $value := .status.hard -}}
{{$quota}}{{"\t"}}hard{{"\t"}}{{$name}}{{"\t"}}{{$value}}
{{end}}{{range $name, $value := .status.used}}{{$quota}}{{"\t"}}used{{"\t"}}{{$name}}{{"\t"}}{{$value}}
{{end}}{{end}}'
  ask get resourcequota --namespace "$namespace" -o go-template="$template" >"$work/quotas"
  while read -r line; do lacks 16 "$line"; done < <(awk_quantities '
    FILENAME == ARGV[1] {
      if ($2 == "count") { count[$1] = $3; total["count", "pods"] += $3 * 1000 }
      if ($2 == "need" || $2 == "limit") total[$2, $3] += count[$1] * $4
      next
    }
    { amounts[$1, $3, $2] = $4; if ($2 == "hard") resources[$1 "\t" $3] }
    END {
      for (key in resources) {
        split(key, part, "\t")
        name = part[2]
        which = name ~ /^limits[.]/ ? "limit" : "need"
        if (name == "pods" || name == "count/pods") which = "count"
        sub(/^(requests[.]|limits[.]|count\/)/, "", name)
        hard = amounts[part[1], part[2], "hard"]
        used = amounts[part[1], part[2], "used"]
        if (used == "") used = 0
        if (((which, name) in total) && total[which, name] + amount(used) > amount(hard))
          printf "the quota %s allows %s %s, of which %s are in use; the job needs %s\n", part[1], part[2], hard, used, \
            readable(total[which, name])
      }
    }' "$work/pods" "$work/quotas" | sort)
}

# Kueue admits a job only if its ClusterQueue covers each resource that the pods request, with enough quota. Quota of a
# cohort can be borrowed: then only the coverage is checked.
check_queue() {
  local active cluster_queue line template
  read -r active cluster_queue < <(ask get localqueue "$1" --namespace "$namespace" --ignore-not-found \
    -o jsonpath='{.status.conditions[?(@.type=="Active")].status} {.spec.clusterQueue}' 2>/dev/null)
  if [ "${active:-}" != True ]; then
    lacks 17 "the queue $1 of the namespace $namespace is missing or not active"
    return
  fi
  template='{{with or .spec.cohortName .spec.cohort}}cohort{{"\t"}}{{.}}
{{end}}{{range .spec.resourceGroups}}{{range .coveredResources}}covered{{"\t"}}{{.}}
{{end}}{{range .flavors}}{{range .resources}}quota{{"\t"}}{{.name}}{{"\t"}}{{.nominalQuota}}
{{end}}{{end}}{{end}}'
  if ! ask get clusterqueue "$cluster_queue" -o go-template="$template" >"$work/queue" 2>/dev/null; then
    note "the quotas of the ClusterQueue $cluster_queue were not checked: it cannot be read"
    return
  fi
  excluded_prefixes >>"$work/queue"
  while read -r line; do lacks 17 "the ClusterQueue $cluster_queue of the queue $1 $line"; done < <(awk_quantities '
    FILENAME == ARGV[1] {
      if ($2 == "count") count[$1] = $3
      if ($2 == "need" && $4 > 0) total[$3] += count[$1] * $4
      next
    }
    $1 == "cohort" { cohort = $2 }
    $1 == "covered" { covered[$2] }
    $1 == "excluded" { for (name in total) if (index(name, $2) == 1) delete total[name] }
    $1 == "quota" && amount($3) > quota[$2] { quota[$2] = amount($3) }
    END {
      for (name in total) {
        if (!(name in covered)) printf "has no quota of %s, and would never admit the job: add it to coveredResources\n", name
        else if (!cohort && total[name] > quota[name])
          printf "has a quota of %s %s, but the job needs %s\n", readable(quota[name]), name, readable(total[name])
      }
    }' "$work/pods" "$work/queue" | sort)
}
# Resources that Kueue's configuration excludes from quotas, as lines excluded PREFIX.
excluded_prefixes() {
  ask get configmap kueue-manager-config --namespace kueue-system --ignore-not-found \
    -o jsonpath='{.data.controller_manager_config\.yaml}' 2>/dev/null | awk '
      /^ *excludeResourcePrefixes:/ { inside = 1; next }
      inside && sub(/^ *- */, "") { gsub(/["\047]/, ""); print "excluded\t" $0; next }
      { inside = 0 }'
}
