# shellcheck shell=bash disable=SC2016,SC2154  # dollars of awk and of templates; variables of k8s/preflight.sh
# The manifest, for k8s/preflight.sh: its values, its pods with their requests, and faults that no cluster accepts.

read_manifest() {  # OVERLAY|FILE
  local folder
  if [ -f "$1" ]; then
    cat "$1" >"$manifest"
  else
    folder=$here/overlays/$1
    [ -d "$folder" ] || folder=$1
    [ -f "$folder/kustomization.yaml" ] || die 1 "there is no overlay $1"
    kubectl kustomize "$folder" >"$manifest" || die 1 "$1 cannot be rendered"
  fi
  # Removes a label that no object has: kubectl parses YAML of any style, without asking the cluster.
  kubectl label --local -f "$manifest" preflight- -o json >"$work/json" || die 1 "$1 is not a manifest"
  sed -n '/^{/,$p' "$work/json" | awk -f "$here/lib/json-lines.awk" >"$work/values"
  read_keys
  awk -f "$here/lib/quantities.awk" -f "$here/lib/pods.awk" "$work/values" >"$work/pods"
}
awk_quantities() { awk -F '\t' "$(cat "$here/lib/quantities.awk") $1" "${@:2}"; }
# Writes $work/keys: distinct lines KEY<tab>VALUE of the keys that the checks ask for, and lines kind KIND<tab>NAME.
read_keys() {
  awk -F '\t' '
    { n = split($1, part, "|") }
    $2 != "" && part[n] ~ /^(namespace|claimName|secretName|replicas|kueue[.]x-k8s[.]io\/queue-name)$/ {
      print part[n] "\t" $2
    }
    n == 2 && part[2] == "kind" { kind = $2 }
    n == 3 && part[2] == "metadata" && part[3] == "name" { print "kind " kind "\t" $2 }' "$work/values" |
    sort -u >"$work/keys"
}
values() {  # KEY
  local key value
  while IFS=$'\t' read -r key value; do [ "$key" != "$1" ] || printf '%s\n' "$value"; done <"$work/keys"
}
names_of() { values "kind $1"; }
has_kind() { [ -n "$(names_of "$1")" ]; }
has_spec_field() { grep -q "^[0-9]*|spec|$1[|"$'\t]' "$work/values"; }

# Names become arguments of kubectl: --server=... would send credentials to another server.
check_names() {
  local key name
  for key in namespace claimName secretName kueue.x-k8s.io/queue-name; do
    while IFS= read -r name; do
      [[ $name =~ ^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$ ]] ||
        die 1 "$key is $(printf %q "$name"): expected lower-case letters, digits, hyphens and dots"
    done < <(values "$key")
  done
  # Pods of a StatefulSet have a label with its name and a hash of ten characters; labels have at most 63 characters.
  while IFS= read -r name; do
    [ ${#name} -le 52 ] || die 1 "the StatefulSet $name has ${#name} characters, expected at most 52: shorten NAME"
  done < <(names_of StatefulSet)
}

# /dev/shm counts towards the memory of a pod, which is killed if both are full.
check_shared_memory() {
  local line
  while IFS= read -r line; do lacks 1 "$line"; done < <(awk_quantities '
    $2 == "limit" && $3 == "memory" { memory[$1] = $4 }
    $2 == "shm" { shm[$1] = $3 }
    END {
      for (pod in shm) if (memory[pod] && shm[pod] >= memory[pod])
        printf "%s: volumes in memory (SHM) of %s, expected less than the memory limit %s\n", pod, readable(shm[pod]), \
          readable(memory[pod])
    }' "$work/pods" | sort)
}
namespace_of_manifest() {
  local found
  found=$(awk -F '\t' '$1 ~ /^[0-9]+\|metadata\|namespace$/ && $2 != "" { print $2; exit }' "$work/values")
  echo "${found:-default}"
}
