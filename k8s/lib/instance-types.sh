# shellcheck shell=bash disable=SC2154  # variables of the table and of k8s/set.sh
# Reads k8s/instance-types.csv, the table of EC2 instance types with GPUs, and sets the instance type of an overlay.
# Source it in a script that defines `die MESSAGE [CODE]`.
instance_table=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/instance-types.csv
instance_types() { sed -n '2,$s/,.*//p' "$instance_table"; }

# Reads the row of an instance type into variables `instance_gpus`, `instance_image` and so on; fails for unknown types.
find_instance() {
  local columns values i
  [ -r "$instance_table" ] || die "$instance_table cannot be read" 6
  IFS=, read -ra columns <"$instance_table"
  while IFS=, read -ra values; do
    [ "${values[0]}" = "$1" ] || continue
    for i in "${!columns[@]}"; do printf -v "instance_${columns[i]#instance_}" %s "${values[i]}"; done
    instance_efa=0  # only the image dtrain-efa uses EFA
    [ "$instance_image" != efa ] || instance_efa=$instance_efa_interfaces
    return
  done < <(tail -n +2 "$instance_table")
  return 1
}
read_instance() {  # NAME-OF-SETTING TYPE
  find_instance "$2" || die "$1='$2': expected one of $(instance_types | paste -sd ' ')"
}

# Overlays, for k8s/set.sh: `kustomized` holds kustomization.yaml, `lines` holds parameters.yaml, one element per line.

component_of() {  # NAME: the index of its line
  local i
  for i in "${!kustomized[@]}"; do
    if [[ ${kustomized[i]} =~ ^\ \ -\ .*components/"$1"$ ]]; then
      echo "$i"
      return
    fi
  done
  return 1
}
add_component() {  # NAME AFTER
  local at
  if component_of "$1" >/dev/null; then return; fi
  at=$(component_of "$2")
  kustomized=("${kustomized[@]:0:at+1}" "${kustomized[at]%"$2"}$1" "${kustomized[@]:at+1}")
}
remove_component() {
  local at
  at=$(component_of "$1") || return 0
  kustomized=("${kustomized[@]:0:at}" "${kustomized[@]:at+1}")
}
add_parameter() {  # NAME AFTER VALUE
  local at
  if ! line_of "$1" >/dev/null; then
    at=$(line_of "$2") || die "$parameters has no parameter $2"
    lines=("${lines[@]:0:at+1}" "  $1: " "${lines[@]:at+1}")
  fi
  set_value "$1" "$3"
}
remove_parameter() {
  local at
  at=$(line_of "$1") || return 0
  lines=("${lines[@]:0:at}" "${lines[@]:at+1}")
}
# Replaces an image of dtrain by the image dtrain-KIND of the same registry and version; other images stay.
set_image() {  # KIND
  local image
  image=$(value_of IMAGE)
  [[ ${image##*/} =~ ^dtrain-(cpu|cuda|cuda12|efa)(:[^@]+)?(@|$) ]] || return 0
  [ "${BASH_REMATCH[1]}" != "$1" ] || return 0
  [ -n "${BASH_REMATCH[2]}" ] || die "IMAGE=$image has no tag: also set IMAGE to the image dtrain-$1"
  set_value IMAGE "${image%"${image##*/}"}dtrain-$1${BASH_REMATCH[2]}"
}

# Sets node selector, image and resources of an overlay with GPUs. An empty type selects nodes of any type, without EFA.
set_instance_type() {  # TYPE
  local name efa
  component_of gpu >/dev/null || die "the overlay $overlay has no GPUs, and no parameter INSTANCE_TYPE"
  if [ -z "$1" ]; then
    for name in instance-type efa; do remove_component $name; done
    for name in INSTANCE_TYPE EFA; do remove_parameter $name; done
    [[ $(value_of IMAGE) != */dtrain-efa:* && $(value_of IMAGE) != dtrain-efa:* ]] || set_image cuda
    return
  fi
  read_instance INSTANCE_TYPE "$1"
  efa=$instance_efa
  line_of WORKERS >/dev/null || efa=0  # a single pod
  add_component instance-type gpu
  add_parameter INSTANCE_TYPE IMAGE "$1"
  if [ "$efa" != 0 ]; then
    add_component efa instance-type
    add_parameter EFA RANKS "$efa"
    set_image efa
  else
    remove_component efa
    remove_parameter EFA
    set_image "${instance_image/efa/cuda}"
  fi
  set_value SLOTS "$instance_gpus"
  set_value CPU "$instance_cpu"
  set_value MEMORY "$instance_memory"
  set_value SHM "$instance_shm"
}

# Refuses requests that no instance of the type satisfies, and images and precisions that its GPUs do not support.
check_instance() {
  local type name most value at
  type=$(value_of INSTANCE_TYPE) && find_instance "$type" || return 0
  # The node needs a part of a CPU.
  for name in "SLOTS $instance_gpus" "EFA $instance_efa_interfaces" "CPU $((instance_vcpus - 1))"; do
    most=${name#* }
    value=$(value_of "${name% *}") || continue
    [[ ! $value =~ ^[0-9]+$ ]] || [ "$value" -le "$most" ] ||
      die "${name% *}=$value is more than the $most of INSTANCE_TYPE=$type"
  done
  if value=$(value_of MEMORY) && [[ $value =~ ^[1-9][0-9]{0,9}[GT]i$ ]] && [ "$(gib "$value")" -gt "$instance_memory_gib" ]; then
    die "MEMORY=$value is more than the ${instance_memory_gib}Gi of INSTANCE_TYPE=$type"
  fi
  [ "$instance_image" = cuda12 ] || return 0
  value=$(value_of IMAGE)
  [[ ! ${value##*/} =~ ^dtrain-(cpu|cuda|efa)[:@] ]] ||
    die "IMAGE=$value has no code for the $instance_gpu of INSTANCE_TYPE=$type: expected the image dtrain-cuda12"
  ! at=$(index_of_assignment --precision) || [ "$(item "$at")" != --precision=bf16 ] ||
    die "the $instance_gpu of INSTANCE_TYPE=$type has no bf16: also set --precision=fp16"
}
