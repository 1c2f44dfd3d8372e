# shellcheck shell=bash disable=SC2154  # root
# Reads a benchmark plan. Source it in a script that defines `die CODE MESSAGE` and `root`, the parent directory of
# k8s/. A plan is data: nothing in it is evaluated.
declare -A values=()
experiments=()
value() { printf '%s' "${values[$1]:-}"; }

plan_keys=' name region cluster nodes storage data data_path result_path image '
experiment_keys=' manifest timeout metric '
bucket_path='^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._=-]+)*$'

# Paths are relative to the repository.
place_of() { case $1 in /*) echo "$1" ;; *) echo "$root/$1" ;; esac }
# Rejects paths that leave the repository through `..` or a link, and paths that begin with a hyphen like an option.
is_inside() {
  local path
  [[ $1 != -* ]] && path=$(realpath -e "$(place_of "$1")" 2>/dev/null) && [[ $path == "$(realpath "$root")"/* ]]
}
is_file() { is_inside "$1" && [ -f "$(place_of "$1")" ]; }
is_manifest() { is_file "$1" || { is_inside "$1" && [ -f "$(place_of "$1")/kustomization.yaml" ]; }; }
# Runs a script in a limited subshell: compiling or matching an expression may exhaust memory, hang or crash.
bounded() {  # SECONDS SCRIPT ARGUMENT...
  { timeout --signal=KILL "$1" bash -c "ulimit -c 0 -v 1000000; $2" bash "${@:3}"; } 2>/dev/null
}
# Also checks the pattern with grep, which is stricter than bash.
has_group() {
  # shellcheck disable=SC2016  # its own arguments
  [ ${#1} -le 200 ] && bounded 10 '[[ "" =~ $1|$ ]] && [ ${#BASH_REMATCH[@]} -gt 1 ] &&
    { grep -qE -e "$1" </dev/null || [ $? = 1 ]; }' "$1"
}
# Includes U+0080 to U+009F, which some terminals interpret, in any locale.
has_control() {
  local LC_ALL=C second=$'\xc2[\x80-\x9f]'
  [[ ${1//$'\t'/ } =~ [[:cntrl:]]|$second ]]
}

# check_value KEY VALUE: prints the expected value if VALUE is invalid, else nothing.
check_value() {
  local file files
  case $1 in
    name) [[ $2 =~ ^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$ ]] || echo "lower-case letters, digits and hyphens" ;;
    region) [[ $2 =~ ^[a-z]{2}(-[a-z]+)+-[0-9]$ ]] || echo "a region such as us-west-2" ;;
    cluster) [ "$2" = existing ] || is_file "$2" || echo "'existing', or an eksctl configuration file in $root" ;;
    nodes) [[ $2 =~ ^[A-Za-z0-9,-]+$ ]] || echo "comma-separated names of node groups" ;;
    data) [[ $2 =~ ^(imagenet|coco|code)$ ]] || echo "imagenet, coco or code" ;;
    data_path | result_path) [[ $2 =~ $bucket_path ]] || echo "BUCKET or BUCKET/PREFIX" ;;
    image) [[ $2 =~ ^[A-Za-z0-9._:/@-]+$ ]] || echo "an image name" ;;
    timeout) [[ $2 =~ ^[1-9][0-9]{0,4}$ ]] || echo "minutes" ;;
    metric) has_group "$2" || echo "an extended regular expression with a group, of at most 200 characters" ;;
    manifest) is_manifest "$2" || echo "a file or a kustomization in $root" ;;
    storage)
      read -ra files <<<"$2"
      for file in "${files[@]}"; do is_manifest "$file" || echo "files or kustomizations in $root"; done | head -n 1
      ;;
  esac
}

read_plan() {
  local file=$1 number=0 line section='' key text wrong keys=$plan_keys name
  [ -f "$file" ] || die 1 "$file: no such file"
  while IFS= read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    line=${line%$'\r'}
    ! has_control "$line" || die 1 "$file:$number: a control character, expected printable text"
    [[ ! $line =~ ^[[:space:]]*(#|$) ]] || continue
    if [[ $line =~ ^\[experiment\ ([a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?)\][[:space:]]*$ ]]; then
      section=${BASH_REMATCH[1]}
      keys=$experiment_keys
      [ "$section" != plan ] || die 1 "$file:$number: an experiment cannot be called plan, which is a file of the results"
      for name in ${experiments[@]+"${experiments[@]}"}; do
        [ "$name" != "$section" ] || die 1 "$file:$number: duplicate experiment $section"
      done
      experiments+=("$section")
      continue
    fi
    [[ $line =~ ^[[:space:]]*([a-z_]+)[[:space:]]*=[[:space:]]*(.*[^[:space:]])[[:space:]]*$ ]] ||
      die 1 "$file:$number: expected 'NAME = VALUE' or '[experiment NAME]'"
    key=${BASH_REMATCH[1]}
    text=${BASH_REMATCH[2]}
    [[ $keys == *" $key "* ]] || die 1 "$file:$number: unknown key '$key', expected one of$keys"
    wrong=$(check_value "$key" "$text")
    [ -z "$wrong" ] || die 1 "$file:$number: $key is '$text', expected $wrong"
    name=$key
    key=${section:+$section/}$key
    [ -z "${values[$key]:-}" ] || die 1 "$file:$number: duplicate $name"
    values[$key]=$text
  done <"$file"
  for key in name region cluster result_path; do [ -n "$(value $key)" ] || die 1 "$file: $key is missing"; done
  [ ${#experiments[@]} != 0 ] || die 1 "$file: no [experiment NAME]"
  for name in "${experiments[@]}"; do [ -n "$(value "$name/manifest")" ] || die 1 "$file: $name has no manifest"; done
  [ -z "$(value data)" ] || [ -n "$(value data_path)" ] || die 1 "$file: data needs data_path"
  check_cluster_region "$file"
}

# Node groups that the plan creates, one per line: instance type and minimum size. The first of several types counts.
node_groups() {
  [ "$(value cluster)" != existing ] || return 0
  awk -v names=",$(value nodes)," '
    function flush() { if (type != "" && (names == ",," || index(names, "," name ","))) print type, minimum + 0 }
    /^  - name: / { flush(); name = $3; type = minimum = "" }
    /^    instanceTypes?: / { type = $2; gsub(/[][",]/, "", type) }
    /^    minSize: / { minimum = $2 }
    END { flush() }' "$(place_of "$(value cluster)")"
}
# Instance type of an experiment, `-` if its files do not state it, and the number of its workers.
nodes_of() {  # MANIFEST
  local place
  place=$(place_of "$1")
  [ ! -d "$place" ] || place=$place/parameters.yaml
  [ -r "$place" ] || place=/dev/null
  awk '{ gsub(/["{},]/, " "); $0 = $0 }
    $1 == "WORKERS:" { workers = $2 }
    $1 == "Launcher:" { launcher = 1; next }
    $1 == "replicas:" && !launcher { workers += $2 }
    $1 == "replicas:" { launcher = 0 }
    { for (i = 1; i < NF; i++) if ($i ~ "^(INSTANCE_TYPE|node.kubernetes.io/instance-type):$") type = $(i + 1) }
    END { print type == "" ? "-" : type, workers ? workers : 1 }' "$place"
}
# Prints the cost of a plan whose experiments all take their time limit. Experiments without an instance type are on the
# most expensive nodes of the plan; the plan does not know the nodes of an existing cluster.
print_cost() {
  local name type workers minutes total=0 largest=unknown price highest=0 used=() unstated=()
  while read -r type _; do
    price=$(price_of "$type")
    if [ -n "$price" ] && awk "BEGIN { exit !($price > $highest) }"; then largest=$type highest=$price; fi
  done < <(node_groups)
  for name in "${experiments[@]}"; do
    minutes=$(value "$name/timeout")
    total=$((total + ${minutes:-60}))
    read -r type workers < <(nodes_of "$(value "$name/manifest")")
    [ "$type/$largest" != -/unknown ] || unstated+=("$name")
    used+=("${type/#-/$largest}=$((workers * ${minutes:-60}))")
  done
  while read -r type workers; do used+=("$type=$((workers * total))"); done < <(node_groups)
  cost_line "cost, if each experiment takes its time limit" "${used[@]}"
  [ ${#unstated[@]} = 0 ] || echo "nodes of unknown type: ${unstated[*]}; INSTANCE_TYPE of an overlay, or a \
nodeSelector node.kubernetes.io/instance-type of the workers, states the type"
}

# Whether the cluster is to be created with the example address of k8s/cluster/eksctl, which has no access to its API.
has_example_address() {
  [ "$(value cluster)" != existing ] &&
    grep -qE '^  publicAccessCIDRs: .*203\.0\.113\.7/32' "$(place_of "$(value cluster)")"
}

# The region in eksctl's configuration file must be the plan's.
check_cluster_region() {
  local cluster region
  cluster=$(value cluster)
  [ "$cluster" != existing ] || return 0
  region=$(sed -nE 's/^  region: *"?([^" ]+)"?.*/\1/p' "$(place_of "$cluster")" | head -n 1)
  [ "$region" = "$(value region)" ] || die 1 "$1: region is $(value region), but $cluster has $region"
}
