#!/usr/bin/env bash
# Sets parameters of an overlay and flags of its program, or parameters of a storage.
#     k8s/set.sh OVERLAY NAME=VALUE... [--FLAG=VALUE...] [-- ARGUMENT...]
#     k8s/set.sh storage/NAME NAME=VALUE...
# OVERLAY is a folder of k8s/overlays, or a path to an overlay.
#   - NAME=VALUE sets a parameter (in capitals) in the overlay's parameters.yaml; k8s/set.sh OVERLAY lists them. RANKS,
#     the number of ranks, is computed from WORKERS and SLOTS and cannot be set.
#   - --FLAG=VALUE replaces or adds a flag in command.yaml. A boolean flag is --FLAG or --FLAG=false.
#   - KEY.PART=VALUE sets a key of --config; NAME=VALUE such as steps=VALUE replaces an existing argument.
#   - Arguments after -- are appended to the command.
# All changes are validated first; if one is invalid, none is made.
# Exit codes: 0 done, 1 usage or an invalid value, 6 a file could not be read or written.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() {
  echo "set.sh: $1" >&2
  exit "${2:-1}"
}

label='[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?'
declare -A expected=(
  [NAMESPACE]="^$label\$|a namespace: at most 63 lower-case letters, digits and hyphens"
  [NAME]='^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$|a name: lower-case letters, digits and hyphens, beginning with a letter'
  [IMAGE]='^[a-z0-9][-a-z0-9._/:]*(:[A-Za-z0-9_][-A-Za-z0-9_.]*|@sha256:[0-9a-f]{64})$|an image with its tag or digest'
  [TENSORBOARD_IMAGE]='^[a-z0-9][-a-z0-9._/:]*(:[A-Za-z0-9_][-A-Za-z0-9_.]*|@sha256:[0-9a-f]{64})$|an image with its tag or digest'
  [INSTANCE_TYPE]='^[a-z][a-z0-9-]*\.[a-z0-9-]+$|an instance type, such as p4d.24xlarge'
  [WORKERS]='^[1-9][0-9]{0,4}$|a number from 1'
  [SLOTS]='^[1-9][0-9]{0,2}$|a number from 1'
  [MIN_RANKS]='^[1-9][0-9]{0,5}$|a number from 1'
  [EFA]='^[1-9][0-9]?$|a number from 1'
  [CPU]='^[1-9][0-9]*m?$|cores, such as 24, or 500m'
  [MEMORY]='^[1-9][0-9]*[KMGT]i$|bytes, such as 64Gi'
  [SHM]='^[1-9][0-9]*[KMGT]i$|bytes, such as 8Gi'
  [USER_ID]='^[1-9][0-9]{0,8}$|a number from 1: the pods do not run as root'
  [GROUP_ID]='^(0|[1-9][0-9]{0,8})$|a number'
  [FS_ID]='^(0|[1-9][0-9]{0,8})$|a number'
  [USER_NAME]='^[a-z_][-a-z0-9_]{0,31}$|a name of at most 32 lower-case letters, digits, - and _'
  [GROUP_NAME]='^[a-z_][-a-z0-9_]{0,31}$|a name of at most 32 lower-case letters, digits, - and _'
  [NFS_SERVER]='^[A-Za-z0-9]([-A-Za-z0-9.:]{0,251}[A-Za-z0-9])?$|a host name or address'
  [PVC_NAME]="^$label(\.$label)*\$|a claim name"
  [SERVICE_ACCOUNT]="^$label(\.$label)*\$|a service account name"
  [DATA_CLAIM]="^$label(\.$label)*\$|a claim name"
  [QUEUE]="^$label(\.$label)*\$|a queue name"
  [FILE_SYSTEM_ID]='^fs-[0-9a-f]{8,40}$|a file system id, such as fs-0123456789abcdef0'
  [DNS_NAME]='^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$|the DNSName of aws fsx describe-file-systems'
  [MOUNT_NAME]='^[A-Za-z0-9_-]{1,8}$|the MountName of aws fsx describe-file-systems'
  [SUBNET_ID]='^subnet-[0-9a-f]{8,17}$|a subnet id, such as subnet-0123456789abcdef0'
  [SECURITY_GROUP_IDS]='^sg-[0-9a-f]{8,17}(,sg-[0-9a-f]{8,17})*$|comma-separated ids such as sg-0123456789abcdef0'
  [AUTO_IMPORT_POLICY]='^(NONE|NEW|NEW_CHANGED|NEW_CHANGED_DELETED)$|NONE, NEW, NEW_CHANGED or NEW_CHANGED_DELETED'
  [THROUGHPUT]='^(125|250|500|1000)$|MB/s per TiB: 125, 250, 500 or 1000'
  [CLASS]="^$label(\.$label)*\$|a StorageClass name"
  [PV_NAME]="^$label(\.$label)*\$|a PersistentVolume name"
  [STORAGE]='^[1-9][0-9]{0,9}[GT]i$|a size, such as 1200Gi'
  [CLAIM_STORAGE]='^[1-9][0-9]{0,9}[GT]i$|a size, such as 1200Gi'
  [RECLAIM_POLICY]='^(Retain|Recycle|Delete)$|Retain, Recycle or Delete'
  [NFS_EXPORT]='^(/|(/[-A-Za-z0-9._]+)+)$|the absolute path that the server exports'
  [S3_URL]='^s3://[a-z0-9][-a-z0-9.]{1,61}[a-z0-9](/[-A-Za-z0-9._/]*)?$|s3://BUCKET/PREFIX'
)
expected[S3_IMPORT_PATH]=${expected[S3_URL]}
expected[S3_EXPORT_PATH]=${expected[S3_URL]}
for path in DATASET_DIR DATA_PATH NFS_PATH PVC_PATH; do
  expected[$path]='^(/[-A-Za-z0-9._]+)+$|an absolute path of letters, digits and -._ without a final /'
done
# Mount paths that would hide files of the image.
taken='^/(bin|boot|dev|etc|lib|lib64|proc|root|run|sbin|sys|tmp|usr|var)(/|$)'

check_value() {  # NAME VALUE
  local rule=${expected[$1]:-}
  [ -n "$rule" ] || die "$1 cannot be set"
  [[ $2 =~ ${rule%|*} ]] || die "$1='$2': expected ${rule##*|}"
  case $1 in
    IMAGE | TENSORBOARD_IMAGE) [[ $2 != *:latest ]] || die "$1='$2': expected a version instead of latest" ;;
    DATASET_DIR | DATA_PATH | NFS_PATH | PVC_PATH)
      [[ $2 != */.. && $2 != */../* && $2 != */. && $2 != */./* ]] || die "$1='$2': expected a path without . and .."
      ! [[ $2 =~ $taken ]] || die "$1='$2': a volume there would hide files of the image"
      ;;
  esac
}

[ $# -ge 1 ] || die "usage: k8s/set.sh OVERLAY NAME=VALUE... [--FLAG=VALUE...] [-- ARGUMENT...]"
overlay=$1
shift
folder=$here/overlays/$overlay
case $overlay in storage/*) folder=$here/$overlay ;; esac
[ -d "$folder" ] || folder=$overlay
parameters=$folder/parameters.yaml
command=$folder/command.yaml
[ -f "$parameters" ] || die "there is no overlay $overlay: $(cd "$here/overlays" && echo -- * | cut -c 4-) $(cd "$here" && echo storage/*/)"
mapfile -t lines <"$parameters" || die "$parameters cannot be read" 6
# Untrusted values are printed. U+0080 to U+009F are control characters, too.
number=$(LC_ALL=C grep -m 1 -naE $'[\x01-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' -- "$parameters") &&
  die "$parameters:${number%%:*}: a control character, expected printable text"

# Line and value of a parameter. A required parameter that is not set is a comment with an example and has no value.
line_of() {
  local i
  for i in "${!lines[@]}"; do
    if [[ ${lines[i]} == "  $1: "* || ${lines[i]} == "  # $1: "* ]]; then
      echo "$i"
      return
    fi
  done
  return 1
}
value_of() {
  local at value
  at=$(line_of "$1") && [[ ${lines[at]} != "  #"* ]] || return 1
  value=${lines[at]#*: }
  value=${value#\"}
  echo "${value%\"}"
}
set_value() {  # quotes numbers, since values of a ConfigMap are strings
  local at
  at=$(line_of "$1") || die "the overlay $overlay has no parameter $1"
  lines[at]="  $1: \"$2\""
}

if [ $# = 0 ]; then
  printf '%s\n' "${lines[@]}" | sed -n -e 's/^  # \([A-Z0-9_]*\): \(.*\)$/\1=   (required, such as \2)/p' \
    -e 's/^  \([A-Z0-9_]*\): "\{0,1\}\([^"]*\)"\{0,1\}$/\1=\2/p'
  exit
fi

# The items of the command, unquoted; `first` is the index after the program's name.
written=()
if [ ! -f "$command" ] && grep -q '^  CLASS: ' "$parameters"; then command=  # a storage
elif ! { [ -f "$command" ] && mapfile -t written <"$command"; }; then die "$command cannot be read" 6; fi
first=0
item() {
  local text=${written[$1]#    - }
  if [[ $text == \'*\' ]]; then
    text=${text:1:-1}
    text=${text//\'\'/\'}
  fi
  echo "$text"
}
quoted() { echo "    - '${1//\'/\'\'}'"; }
for i in "${!written[@]}"; do
  [[ ${written[i]} == "    - "* ]] || continue
  word=$(item "$i")
  if [[ $word =~ ^dtrain-[a-z-]+$ ]] && [ "$word" != dtrain-mpirun ]; then first=$((i + 1)); fi
done

insert() {  # INDEX TEXT
  written=("${written[@]:0:$1}" "$(quoted "$2")" "${written[@]:$1}")
}
index_of() {  # the first item that is one of the arguments
  local i wanted
  for ((i = first; i < ${#written[@]}; i++)); do
    for wanted in "$@"; do
      if [[ ${written[i]} == "    - "* ]] && [ "$(item "$i")" = "$wanted" ]; then
        echo "$i"
        return
      fi
    done
  done
  return 1
}
# Index of the item NAME=VALUE; NAME includes leading hyphens.
index_of_assignment() {
  local i
  for ((i = first; i < ${#written[@]}; i++)); do
    if [[ $(item "$i") == "$1="* ]]; then
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
touched_command=no
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
  elif [ "$name" = RANKS ]; then
    die "RANKS follows from WORKERS and SLOTS"
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
if workers=$(value_of WORKERS) && slots=$(value_of SLOTS); then
  ranks=$(((workers + $(value_of LAUNCHERS || echo 0)) * slots))
  set_value RANKS "$ranks"
  if minimum=$(value_of MIN_RANKS) && [ "$minimum" -gt "$ranks" ]; then
    die "MIN_RANKS is $minimum, more than WORKERS x SLOTS = $ranks"
  fi
  last=$(value_of NAME)-worker-$((workers - 1))
  [ ${#last} -le 63 ] || die "NAME: the last worker's name $last has ${#last} characters, expected at most 63"
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
gib() { case $1 in *Ti) echo $((${1%Ti} * 1024)) ;; *) echo "${1%Gi}" ;; esac }
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
  local file=$1
  shift
  { printf '%s\n' "$@" >"$file.new" && mv "$file.new" "$file"; } || die "$file cannot be written" 6
}
store "$parameters" "${lines[@]}"
[ $touched_command = no ] || store "$command" "${written[@]}"
