# shellcheck shell=bash disable=SC2154  # root
# Reads a benchmark plan: to be sourced by a script that has `die CODE MESSAGE` and `root`, the folder above k8s/. A plan
# is data: nothing in it is evaluated.
declare -A values=()
experiments=()
value() { printf '%s' "${values[$1]:-}"; }

plan_keys=' name region cluster nodes storage data data_path result_path image '
experiment_keys=' manifest timeout metric '
bucket_path='^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._=-]+)*$'

is_manifest() { [ -f "$root/$1" ] || [ -f "$root/$1/kustomization.yaml" ]; }

# check_value KEY VALUE: why the value of a key cannot be, or nothing.
check_value() {
  local file
  case $1 in
    name) [[ $2 =~ ^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$ ]] || echo "small letters, digits and hyphens" ;;
    region) [[ $2 =~ ^[a-z]{2}(-[a-z]+)+-[0-9]$ ]] || echo "a region such as us-west-2" ;;
    cluster) [ "$2" = existing ] || [ -f "$root/$2" ] || echo "'existing', or a file of eksctl's in $root" ;;
    nodes) [[ $2 =~ ^[A-Za-z0-9,-]+$ ]] || echo "names of node groups with commas between them" ;;
    data) [[ $2 =~ ^(imagenet|coco|code)$ ]] || echo "imagenet, coco or code" ;;
    data_path | result_path) [[ $2 =~ $bucket_path ]] || echo "BUCKET or BUCKET/PREFIX" ;;
    image) [[ $2 =~ ^[A-Za-z0-9._:/@-]+$ ]] || echo "the name of an image" ;;
    timeout) [[ $2 =~ ^[1-9][0-9]{0,4}$ ]] || echo "minutes" ;;
    metric) [[ $2 == *'('*')'* ]] || echo "an extended regular expression with one group" ;;
    manifest) is_manifest "$2" || echo "a file or a kustomization in $root" ;;
    storage) for file in $2; do is_manifest "$file" || echo "files or kustomizations in $root"; done | head -n 1 ;;
  esac
}

read_plan() {
  local file=$1 number=0 line section='' key text wrong keys=$plan_keys name
  [ -f "$file" ] || die 1 "$file: there is no such file"
  while IFS= read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    [[ ! $line =~ ^[[:space:]]*(#|$) ]] || continue
    if [[ $line =~ ^\[experiment\ ([a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?)\][[:space:]]*$ ]]; then
      section=${BASH_REMATCH[1]}
      keys=$experiment_keys
      for name in ${experiments[@]+"${experiments[@]}"}; do
        [ "$name" != "$section" ] || die 1 "$file:$number: a second experiment $section"
      done
      experiments+=("$section")
      continue
    fi
    [[ $line =~ ^[[:space:]]*([a-z_]+)[[:space:]]*=[[:space:]]*(.*[^[:space:]])[[:space:]]*$ ]] ||
      die 1 "$file:$number: expected 'NAME = VALUE' or '[experiment NAME]'"
    key=${BASH_REMATCH[1]}
    text=${BASH_REMATCH[2]}
    [[ $keys == *" $key "* ]] || die 1 "$file:$number: '$key' is none of$keys"
    wrong=$(check_value "$key" "$text")
    [ -z "$wrong" ] || die 1 "$file:$number: $key is '$text', expected $wrong"
    name=$key
    key=${section:+$section/}$key
    [ -z "${values[$key]:-}" ] || die 1 "$file:$number: a second $name"
    values[$key]=$text
  done <"$file"
  for key in name region cluster result_path; do [ -n "$(value $key)" ] || die 1 "$file: there is no $key"; done
  [ ${#experiments[@]} != 0 ] || die 1 "$file: there is no [experiment NAME]"
  for name in "${experiments[@]}"; do [ -n "$(value "$name/manifest")" ] || die 1 "$file: $name has no manifest"; done
  [ -z "$(value data)" ] || [ -n "$(value data_path)" ] || die 1 "$file: data needs data_path"
  check_cluster_region "$file"
}

# eksctl takes the region of its own file.
check_cluster_region() {
  local cluster region
  cluster=$(value cluster)
  [ "$cluster" != existing ] || return 0
  region=$(sed -nE 's/^  region: *"?([^" ]+)"?.*/\1/p' "$root/$cluster" | head -n 1)
  [ "$region" = "$(value region)" ] || die 1 "$1: region is $(value region), and that of $cluster is $region"
}
