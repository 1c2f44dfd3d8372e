#!/usr/bin/env bash
# Sets parameters of an overlay and flags of its program, or parameters of a storage.
#     k8s/set.sh [--output FOLDER] OVERLAY NAME=VALUE... [--FLAG=VALUE...] [-- ARGUMENT...]
#     k8s/set.sh [--output FOLDER] storage/NAME NAME=VALUE...
# OVERLAY is a folder of k8s/overlays, or a path to an overlay.
#   - NAME=VALUE sets a parameter (in capitals) in the overlay's parameters.yaml; k8s/set.sh OVERLAY lists them. RANKS,
#     the number of ranks, is computed from WORKERS and SLOTS and cannot be set.
#   - INSTANCE_TYPE=TYPE, in overlays with GPUs, selects nodes of an EC2 instance type of k8s/instance-types.csv and sets
#     IMAGE, SLOTS, EFA, CPU, MEMORY and SHM accordingly, unless they are set, too. INSTANCE_TYPE= selects any nodes.
#   - Optional parameters, which NAME= removes: PRIORITY_CLASS, IMAGE_PULL_SECRETS, SERVICE_ACCOUNT, TOLERATIONS, AFFINITY,
#     TOPOLOGY_SPREAD, LABELS, ANNOTATIONS, ENV and EPHEMERAL_STORAGE of all pods, and QUEUE, TOPOLOGY, EFA, MONITORING,
#     SPOT and ISTIO, which add a component (k8s/README.md).
#   - --FLAG=VALUE replaces or adds a flag in command.yaml. A boolean flag is --FLAG or --FLAG=false.
#   - KEY.PART=VALUE sets a key of --config; NAME=VALUE such as steps=VALUE replaces an existing argument.
#   - Arguments after -- are appended to the command.
# All changes are validated first; if one is invalid, none is made. --output writes the changed files to FOLDER and leaves
# the overlay unchanged.
# Exit codes: 0 done, 1 usage or an invalid value, 6 a file could not be read or written.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() {
  echo "set.sh: $1" >&2
  exit "${2:-1}"
}

# shellcheck source-path=SCRIPTDIR source=lib/parameters.sh
. "$here/lib/parameters.sh"
# shellcheck source-path=SCRIPTDIR source=lib/instance-types.sh
. "$here/lib/instance-types.sh"
# shellcheck source-path=SCRIPTDIR source=lib/platform.sh
. "$here/lib/platform.sh"

destination=
if [ "${1:-}" = --output ]; then
  destination=${2:-}
  [ -d "$destination" ] || die "--output needs a folder"
  shift 2
fi
[ $# -ge 1 ] || die "usage: k8s/set.sh [--output FOLDER] OVERLAY NAME=VALUE... [--FLAG=VALUE...] [-- ARGUMENT...]"
overlay=$1
shift
folder=$here/overlays/$overlay
case $overlay in storage/*) folder=$here/$overlay ;; esac
[ -d "$folder" ] || folder=$overlay
parameters=$folder/parameters.yaml
command=$folder/command.yaml
kustomization=$folder/kustomization.yaml
[ -f "$parameters" ] || die "there is no overlay $overlay: $(cd "$here/overlays" && echo -- * | cut -c 4-) $(cd "$here" && echo storage/*/)"
mapfile -t lines <"$parameters" || die "$parameters cannot be read" 6
mapfile -t kustomized <"$kustomization" || die "$kustomization cannot be read" 6
# Untrusted values are printed. U+0080 to U+009F are control characters, too.
number=$(LC_ALL=C grep -m 1 -naE $'[\x01-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' -- "$parameters") &&
  die "$parameters:${number%%:*}: a control character, expected printable text"

# Line and value of a parameter. A required parameter that is not set is a comment with an example and has no value.
find_line() {  # sets `found`, since a subshell for each line costs time
  for found in "${!lines[@]}"; do
    if [[ ${lines[found]} == "  $1: "* || ${lines[found]} == "  # $1: "* ]]; then return; fi
  done
  return 1
}
line_of() {
  local found
  find_line "$1" && echo "$found"
}
value_of() {
  local found value
  find_line "$1" && [[ ${lines[found]} != "  #"* ]] || return 1
  value=${lines[found]#*: }
  value=${value#\"}
  echo "${value%\"}"
}
kib() {
  case $1 in
    *Ki) echo "${1%Ki}" ;;
    *Mi) echo $((${1%Mi} << 10)) ;;
    *Gi) echo $((${1%Gi} << 20)) ;;
    *) echo $((${1%Ti} << 30)) ;;
  esac
}
gib() { case $1 in *Ti) echo $((${1%Ti} * 1024)) ;; *) echo "${1%Gi}" ;; esac }
set_value() {  # quotes numbers, since values of a ConfigMap are strings
  local at
  at=$(line_of "$1") || die "the overlay $overlay has no parameter $1"
  lines[at]="  $1: \"$2\""
}

if [ $# = 0 ]; then
  printf '%s\n' "${lines[@]}" | sed -n -e 's/^  # \([A-Z0-9_]*\): \(.*\)$/\1=   (required, such as \2)/p' \
    -e 's/^  \([A-Z0-9_]*\): "\{0,1\}\([^"]*\)"\{0,1\}$/\1=\2/p'
  if component_of gpu >/dev/null && ! line_of INSTANCE_TYPE >/dev/null; then echo "INSTANCE_TYPE=   (any)"; fi
  exit
fi

# The items of the command, unquoted; `first` is the index after the program's name.
written=()
if [ ! -f "$command" ] && grep -q '^  CLASS: ' "$parameters"; then command=  # a storage
elif ! { [ -f "$command" ] && mapfile -t written <"$command"; }; then die "$command cannot be read" 6; fi
first=0
unquote() {  # INDEX: sets `word`
  word=${written[$1]#    - }
  if [[ $word == \'*\' ]]; then
    word=${word:1:-1}
    word=${word//\'\'/\'}
  fi
}
item() {
  local word
  unquote "$1"
  echo "$word"
}
quoted() { echo "    - '${1//\'/\'\'}'"; }
for i in "${!written[@]}"; do
  [[ ${written[i]} == "    - "* ]] || continue
  unquote "$i"
  if [[ $word =~ ^dtrain-[a-z-]+$ ]] && [ "$word" != dtrain-mpirun ]; then first=$((i + 1)); fi
done

insert() {  # INDEX TEXT
  written=("${written[@]:0:$1}" "$(quoted "$2")" "${written[@]:$1}")
}
index_of() {  # the first item that is one of the arguments
  local i wanted word
  for ((i = first; i < ${#written[@]}; i++)); do
    unquote "$i"
    for wanted in "$@"; do
      if [[ ${written[i]} == "    - "* && $word == "$wanted" ]]; then
        echo "$i"
        return
      fi
    done
  done
  return 1
}
# Index of the item NAME=VALUE; NAME includes leading hyphens.
index_of_assignment() {
  local i word
  for ((i = first; i < ${#written[@]}; i++)); do
    unquote "$i"
    if [[ $word == "$1="* ]]; then
      echo "$i"
      return
    fi
  done
  return 1
}

set_flag() {  # NAME VALUE, or NAME alone for a switch
  local at flag=--$1 text=--$1${2+=$2}
  case $1 in np | n | expect_ranks | hostfile) die "--$1 follows from WORKERS and SLOTS" ;; esac
  [[ $1 =~ ^[a-z][a-z0-9_-]*$ ]] || die "'--$1' is not a flag name"
  if at=$(index_of_assignment "$flag" || index_of_assignment "-$1"); then
    written[at]=$(quoted "$text")
  elif at=$(index_of "$flag" "-$1" "--no$1"); then
    # The next item is the flag's value, as in `--batch_size 128`, if it does not begin with a hyphen.
    if [ -n "${2+set}" ] && [[ ${written[at + 1]:-} == "    - "* ]] && [[ $(item $((at + 1))) != -* ]]; then
      written[at + 1]=$(quoted "$2")
    else
      written[at]=$(quoted "$text")
    fi
  elif at=$(index_of -- --config); then
    insert "$at" "$text"
  else
    insert ${#written[@]} "$text"
  fi
}
set_key() {  # KEY VALUE: of --config, or one that the command has
  local at
  if at=$(index_of_assignment "$1"); then
    written[at]=$(quoted "$1=$2")
  elif [[ $1 == *.* ]] && index_of --config >/dev/null; then
    insert ${#written[@]} "$1=$2"
  else
    die "the command of $overlay has neither $1 nor --config"
  fi
}

for argument in "$@"; do
  [[ $argument != *[[:cntrl:]]* ]] || die "an argument contains a line break or another control character"
done
touched_command=no touched_kustomization=no touched_pods=no touched_metrics=no
image=$(value_of IMAGE)
# First, so that other parameters override it.
for argument in "$@"; do
  [ "$argument" != -- ] || break
  [[ $argument == INSTANCE_TYPE=* ]] || continue
  set_instance_type "${argument#*=}"
  touched_kustomization=yes
done
while [ $# != 0 ]; do
  argument=$1
  shift
  name=${argument%%=*}
  value=${argument#*=}
  if [ "$argument" = -- ]; then
    [ $first != 0 ] || [ -n "$command" ] || die "$overlay has no program that accepts arguments"
    for argument in "$@"; do insert ${#written[@]} "$argument"; done
    touched_command=yes
    break
  elif [[ $argument == --* ]]; then
    [ $first != 0 ] || die "the command of $overlay has no dtrain program"
    touched_command=yes
    if [[ $argument == *=* ]]; then set_flag "${name#--}" "$value"; else set_flag "${name#--}"; fi
  elif [[ $argument != *=* ]]; then
    die "'$argument': expected NAME=VALUE, --FLAG or --FLAG=VALUE"
  elif [ "$name" = INSTANCE_TYPE ]; then
    continue
  elif [ "$name" = RANKS ]; then
    die "RANKS follows from WORKERS and SLOTS"
  elif [[ $name =~ ^[A-Z0-9_]+$ ]] && is_optional "$name"; then
    [ -z "$value" ] || check_value "$name" "$value"
    set_optional "$name" "$value"
    touched_kustomization=yes touched_pods=yes
    [ "$name" != MONITORING ] || touched_metrics=yes
  elif [[ $name =~ ^[A-Z0-9_]+$ ]] && line_of "$name" >/dev/null; then
    check_value "$name" "$value"
    set_value "$name" "$value"
  elif [[ $name =~ ^[A-Z0-9_]+$ ]] && [ -n "${expected[$name]:-}" ]; then
    die "the overlay $overlay has no parameter $name"
  else
    touched_command=yes
    set_key "$name" "$value"
  fi
done

# Derived parameters and conflicts. Values are validated first: bash arithmetic would execute code in an untrusted file.
for name in WORKERS SLOTS MIN_RANKS STORAGE CLAIM_STORAGE; do
  if value=$(value_of $name); then check_value $name "$value"; fi
done
if value=$(value_of LAUNCHERS); then
  [[ $value =~ ^(0|[1-9][0-9]{0,2})$ ]] || die "LAUNCHERS='$value': expected a number"
fi
if slots=$(value_of SLOTS) && at=$(index_of_assignment --num_gpus) && [ "$(item "$at")" != "--num_gpus=$slots" ]; then
  set_flag num_gpus "$slots"
  touched_command=yes
fi
if workers=$(value_of WORKERS) && slots=$(value_of SLOTS); then
  ranks=$(((workers + $(value_of LAUNCHERS || echo 0)) * slots))
  set_value RANKS "$ranks"
  if minimum=$(value_of MIN_RANKS) && [ "$minimum" -gt "$ranks" ]; then
    die "MIN_RANKS is $minimum, more than WORKERS x SLOTS = $ranks"
  fi
  last=$(value_of NAME)-worker-$((workers - 1))
  [ ${#last} -le 63 ] || die "NAME: the last worker's name $last has ${#last} characters, expected at most 63"
fi
# Pods of a StatefulSet have a label with its name and a hash of ten characters; labels have at most 63 characters.
if grep -qs '^kind: StatefulSet$' "$folder"/*.yaml; then
  workers=$(value_of NAME)-worker
  [ ${#workers} -le 52 ] || die "NAME: the StatefulSet $workers has ${#workers} characters, expected at most 52"
fi
if shm=$(value_of SHM) && memory=$(value_of MEMORY); then
  check_value SHM "$shm"
  check_value MEMORY "$memory"
  [ "$(kib "$shm")" -lt "$(kib "$memory")" ] || die "SHM=$shm counts towards MEMORY=$memory: expected less than MEMORY"
fi
check_instance
if value_of TOPOLOGY >/dev/null && ! value_of QUEUE >/dev/null; then die "TOPOLOGY needs QUEUE, a queue of Kueue"; fi
patch=()
if [ $touched_pods = yes ]; then
  if [ $touched_metrics = yes ]; then
    touched_command=yes
    if value_of MONITORING >/dev/null; then set_metrics_flags; else remove_metrics_flags; fi
  fi
  check_env
  make_pods
  reference_pods
fi
if data=$(value_of DATA_PATH) && dataset=$(value_of DATASET_DIR) && [[ $dataset/ != "$data"/* ]]; then
  die "DATASET_DIR=$dataset is not inside DATA_PATH=$data, the mount path of its volume"
fi
for path in DATA_PATH DATASET_DIR; do
  for output in NFS_PATH PVC_PATH; do
    if a=$(value_of $path) && b=$(value_of $output) && [ "$a" = "$b" ]; then
      die "$path and $output are both $a: data is mounted read-only, results are writable"
    fi
  done
done

# Conditions of volume binding and of the CSI drivers.
if size=$(value_of STORAGE) && asked=$(value_of CLAIM_STORAGE) && [ "$(gib "$asked")" -gt "$(gib "$size")" ]; then
  die "CLAIM_STORAGE=$asked is more than STORAGE=$size: a claim cannot be bound to a smaller volume"
fi
if volume=$(value_of PV_NAME) && policy=$(value_of RECLAIM_POLICY); then
  [ "$policy" != Delete ] || die "RECLAIM_POLICY=Delete: the file system of $volume would be deleted with its claim"
  [ "$policy" != Recycle ] || ! line_of NFS_EXPORT >/dev/null || die "RECLAIM_POLICY=Recycle empties an NFS export"
fi
if system=$(value_of FILE_SYSTEM_ID) && dns=$(value_of DNS_NAME) && [[ $dns != "$system".* ]]; then
  die "DNS_NAME=$dns does not begin with FILE_SYSTEM_ID=$system"
fi
if import=$(value_of S3_IMPORT_PATH) && export=$(value_of S3_EXPORT_PATH); then
  bucket=${import#s3://}
  export=${export#s3://}
  [ "${bucket%%/*}" = "${export%%/*}" ] || die "S3_EXPORT_PATH and S3_IMPORT_PATH are in different buckets"
fi

store() {  # FILE LINE...
  local file=${destination:-${1%/*}}/${1##*/}
  shift
  { printf '%s\n' "$@" >"$file.new" && mv "$file.new" "$file"; } || die "$file cannot be written" 6
}
store "$parameters" "${lines[@]}"
if [ ${#patch[@]} != 0 ]; then
  store "$folder/pods.yaml" "# Written by k8s/set.sh from parameters.yaml." "${patch[@]}"
elif [ $touched_pods = yes ]; then
  rm -f "$folder/pods.yaml"
fi
[ $touched_kustomization = no ] || store "$kustomization" "${kustomized[@]}"
[ $touched_command = no ] || store "$command" "${written[@]}"
if [ $touched_kustomization = yes ] && [ "$(value_of IMAGE)" != "$image" ]; then
  echo "note: IMAGE is now $(value_of IMAGE)" >&2
fi
