#!/usr/bin/env bash
# Changes an overlay: its parameters, and the flags of its program; or a storage: its parameters.
#     k8s/set.sh OVERLAY NAME=VALUE... [--FLAG=VALUE...] [-- ARGUMENT...]
#     k8s/set.sh storage/NAME NAME=VALUE...
# OVERLAY is the name of a folder of k8s/overlays, or the path of such a folder.
#   - NAME=VALUE is a parameter, in capitals, of the overlay's parameters.yaml; k8s/set.sh OVERLAY lists them. RANKS,
#     the number that mpirun starts, is made of WORKERS and SLOTS, and cannot be set.
#   - --FLAG=VALUE is put in the place of that flag in command.yaml, or added. A switch is --FLAG or --FLAG=false.
#   - KEY.PART=VALUE is a key of --config, and steps=VALUE and the like are what the command already has by that name.
#   - What follows -- is added at the end of the command.
# All changes are checked first; with one that is wrong none is made.
# Exit codes: 0 done, 1 usage or a value that cannot be right, 6 a file could not be read or written.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() {
  echo "set.sh: $1" >&2
  exit "${2:-1}"
}

label='[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?'
declare -A expected=(
  [NAMESPACE]="^$label\$|a namespace: small letters, digits and hyphens, 63 at most"
  [NAME]='^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$|a name: small letters, digits and hyphens, beginning with a letter'
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
  [USER_NAME]='^[a-z_][-a-z0-9_]{0,31}$|a name of 32 small letters, digits, - and _ at most'
  [GROUP_NAME]='^[a-z_][-a-z0-9_]{0,31}$|a name of 32 small letters, digits, - and _ at most'
  [NFS_SERVER]='^[A-Za-z0-9]([-A-Za-z0-9.:]{0,251}[A-Za-z0-9])?$|the name or address of a host'
  [PVC_NAME]="^$label(\.$label)*\$|the name of a claim"
  [SERVICE_ACCOUNT]="^$label(\.$label)*\$|the name of a service account"
  [DATA_CLAIM]="^$label(\.$label)*\$|the name of a claim"
  [QUEUE]="^$label(\.$label)*\$|the name of a queue"
  [FILE_SYSTEM_ID]='^fs-[0-9a-f]{8,40}$|the id of a file system, such as fs-0123456789abcdef0'
  [DNS_NAME]='^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$|the DNS name that aws fsx describe-file-systems shows'
  [MOUNT_NAME]='^[A-Za-z0-9_-]{1,8}$|the MountName that aws fsx describe-file-systems shows'
  [SUBNET_ID]='^subnet-[0-9a-f]{8,17}$|the id of a subnet, such as subnet-0123456789abcdef0'
  [SECURITY_GROUP_IDS]='^sg-[0-9a-f]{8,17}(,sg-[0-9a-f]{8,17})*$|ids such as sg-0123456789abcdef0, with commas between them'
  [AUTO_IMPORT_POLICY]='^(NONE|NEW|NEW_CHANGED|NEW_CHANGED_DELETED)$|NONE, NEW, NEW_CHANGED or NEW_CHANGED_DELETED'
  [THROUGHPUT]='^(125|250|500|1000)$|MB/s for each TiB: 125, 250, 500 or 1000'
  [CLASS]="^$label(\.$label)*\$|the name of a storage class"
  [PV_NAME]="^$label(\.$label)*\$|the name of a volume"
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
# Where a volume would hide what a pod needs.
taken='^/(bin|boot|dev|etc|lib|lib64|proc|root|run|sbin|sys|tmp|usr|var)(/|$)'

check_value() {  # NAME VALUE
  local rule=${expected[$1]:-}
  [ -n "$rule" ] || die "$1 cannot be set"
  [[ $2 =~ ${rule%|*} ]] || die "$1='$2': expected ${rule##*|}"
  case $1 in
    IMAGE | TENSORBOARD_IMAGE) [[ $2 != *:latest ]] || die "$1='$2': expected a version, since nobody can say what latest was" ;;
    DATASET_DIR | DATA_PATH | NFS_PATH | PVC_PATH)
      [[ $2 != */.. && $2 != */../* && $2 != */. && $2 != */./* ]] || die "$1='$2': expected a path without . and .."
      ! [[ $2 =~ $taken ]] || die "$1='$2': the pods have files of their own there"
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
# Values of a foreign overlay are shown. U+0080 to U+009F are control characters, too.
number=$(LC_ALL=C grep -m 1 -naE $'[\x01-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' -- "$parameters") &&
  die "$parameters:${number%%:*}: a control character, expected text"

# The line of a parameter, and its value. One that has to be set first is a comment, with an example, and has none.
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
set_value() {  # those of a number are quoted, since a ConfigMap holds text
  local at
  at=$(line_of "$1") || die "the overlay $overlay has no parameter $1"
  lines[at]="  $1: \"$2\""
}

if [ $# = 0 ]; then
  printf '%s\n' "${lines[@]}" | sed -n -e 's/^  # \([A-Z0-9_]*\): \(.*\)$/\1=   (has to be set, such as \2)/p' \
    -e 's/^  \([A-Z0-9_]*\): "\{0,1\}\([^"]*\)"\{0,1\}$/\1=\2/p'
  exit
fi

# The items of the command, without quotes; `first` is the one after the program's name.
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
# NAME=VALUE of the command, NAME with what stands before it.
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
  [[ $1 =~ ^[a-z][a-z0-9_-]*$ ]] || die "'--$1' is no name of a flag"
  if at=$(index_of_assignment "$flag" || index_of_assignment "-$1"); then
    written[at]=$(quoted "$text")
  elif at=$(index_of "$flag" "-$1" "--no$1"); then
    # A value of its own, as in `--batch_size 128`, is what does not look like the next flag.
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
    die "the command of $overlay has no $1, and no --config that would take it"
  fi
}

for argument in "$@"; do
  [[ $argument != *[[:cntrl:]]* ]] || die "an argument holds a line break or another control character"
done
touched_command=no
while [ $# != 0 ]; do
  argument=$1
  shift
  name=${argument%%=*}
  value=${argument#*=}
  if [ "$argument" = -- ]; then
    [ $first != 0 ] || [ -n "$command" ] || die "$overlay has no program that would take arguments"
    for argument in "$@"; do insert ${#written[@]} "$argument"; done
    touched_command=yes
    break
  elif [[ $argument == --* ]]; then
    [ $first != 0 ] || die "the command of $overlay has no program whose flags could be set"
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

# What follows from others, and what does not go together.
# Arithmetic would run what a foreign overlay's file has in the place of a number.
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
    die "MIN_RANKS is $minimum, and WORKERS x SLOTS are $ranks"
  fi
  last=$(value_of NAME)-worker-$((workers - 1))
  [ ${#last} -le 63 ] || die "NAME: the last worker would be $last, a name of ${#last} letters; 63 are allowed"
fi
if data=$(value_of DATA_PATH) && dataset=$(value_of DATASET_DIR) && [[ $dataset/ != "$data"/* ]]; then
  die "DATASET_DIR=$dataset does not lie in DATA_PATH=$data, where its volume is mounted"
fi
for path in DATA_PATH DATASET_DIR; do
  for output in NFS_PATH PVC_PATH; do
    if a=$(value_of $path) && b=$(value_of $output) && [ "$a" = "$b" ]; then
      die "$path and $output are both $a: data is mounted read-only, results are not"
    fi
  done
done

# What Kubernetes' binder and the drivers ask for.
gib() { case $1 in *Ti) echo $((${1%Ti} * 1024)) ;; *) echo "${1%Gi}" ;; esac }
if size=$(value_of STORAGE) && asked=$(value_of CLAIM_STORAGE) && [ "$(gib "$asked")" -gt "$(gib "$size")" ]; then
  die "CLAIM_STORAGE=$asked is more than STORAGE=$size, and a claim is bound to no smaller volume"
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
  [ "${bucket%%/*}" = "${export%%/*}" ] || die "S3_EXPORT_PATH lies in another bucket than S3_IMPORT_PATH"
fi

store() {  # FILE LINE...
  local file=$1
  shift
  { printf '%s\n' "$@" >"$file.new" && mv "$file.new" "$file"; } || die "$file cannot be written" 6
}
store "$parameters" "${lines[@]}"
[ $touched_command = no ] || store "$command" "${written[@]}"
