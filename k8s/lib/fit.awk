# Finds a node for each pod: fit.awk PODS NODES. PODS is the output of pods.awk, with lines POD<tab>driver<tab>MAJOR for
# the NVIDIA driver that an image needs. NODES has lines, separated by tabs:
#     node NAME          begins a node, or what an autoscaler would add; the following lines belong to it
#     label KEY VALUE    * is any value, ? any value that is not in `known`
#     has RESOURCE QUANTITY    taint KEY VALUE EFFECT
#     most NUMBER        nodes of this kind; limit RESOURCE QUANTITY of all of them together
# Prints POD<tab>ok<tab>NODE; or, for the nearest node, POD<tab>driver<tab>NODE<tab>VERSION<tab>EXPECTED if only the
# driver is too old, and POD<tab>no<tab>NODE<tab>REASON. Needs quantities.awk.
BEGIN { FS = "\t" }
FILENAME == ARGV[1] {
  if (!($1 in count)) pods[++last] = $1
  if ($2 == "count") count[$1] = $3
  if ($2 == "need" && $4 > 0) needs[$1] = needs[$1] $3 "\t" $4 "\n"
  if ($2 == "select") selects[$1] = selects[$1] $3 "\t" $4 "\n"
  if ($2 == "tolerate") tolerations[$1] = tolerations[$1] $3 "\t" $4 "\t" $5 "\n"
  if ($2 == "driver") driver[$1] = $3
  next
}
$1 == "node" {
  consider()
  node = $2
  most = 0
  split("", label)
  split("", has)
  split("", limit)
  taints = ""
}
$1 == "label" { label[$2] = $3 }
$1 == "has" { has[$2] = amount($3) }
$1 == "taint" && $4 != "PreferNoSchedule" { taints = taints $2 "\t" $3 "\t" $4 "\n" }
$1 == "most" { most = $2 }
$1 == "limit" { limit[$2] = amount($3) }
END {
  consider()
  for (i = 1; i <= last; i++) {
    pod = pods[i]
    if (pod in found) print pod "\tok\t" found[pod]
    else if (pod in outdated) print pod "\tdriver\t" outdated[pod] "\t" driver[pod]
    else print pod "\tno\t" nearest[pod]
  }
}

function one_of(pattern, value) { return pattern == "*" || pattern == value }
function tolerated(pod, key, value, effect,   i, n, line, part) {
  n = split(tolerations[pod], line, "\n")
  for (i = 1; i < n; i++) {
    split(line[i], part, "\t")
    if (one_of(part[1], key) && one_of(part[2], value) && one_of(part[3], effect)) return 1
  }
  return 0
}
function selected(key, value) {
  if (label[key] == "*" || label[key] == value) return 1
  return label[key] == "?" && index(known, " " value " ") == 0
}
function because(text, weight) {
  reason = reason (reason == "" ? "" : ", ") text
  distance += weight
}
function compare(pod,   i, n, line, part) {
  reason = ""
  distance = 0
  n = split(selects[pod], line, "\n")
  for (i = 1; i < n; i++) {
    split(line[i], part, "\t")
    if (!selected(part[1], part[2])) because("its label " part[1] " is not " part[2], 1000)
  }
  n = split(taints, line, "\n")
  for (i = 1; i < n; i++) {
    split(line[i], part, "\t")
    if (!tolerated(pod, part[1], part[2], part[3])) because("the pod does not tolerate its taint " part[1], 100)
  }
  n = split(needs[pod], line, "\n")
  for (i = 1; i < n; i++) {
    split(line[i], part, "\t")
    if (has[part[1]] < part[2])
      because(part[1] ": " readable(part[2]) " requested, " readable(has[part[1]] + 0) " available", 1)
    else if (part[1] in limit && count[pod] * part[2] > limit[part[1]])
      because(part[1] ": " readable(count[pod] * part[2]) " for all pods, limit " readable(limit[part[1]]), 1)
    else if (most && count[pod] * part[2] > most * has[part[1]])
      because(part[1] ": " readable(count[pod] * part[2]) " for all pods, " readable(most * has[part[1]]) \
        " on at most " most " nodes", 1)
  }
}
function consider(   i, pod, major) {
  if (node == "") return
  for (i = 1; i <= last; i++) {
    pod = pods[i]
    if (pod in found) continue
    compare(pod)
    major = label["nvidia.com/cuda.driver-version.major"]
    if (major == "") major = label["nvidia.com/cuda.driver.major"]
    if (distance == 0) {
      if (pod in driver && major != "" && major + 0 < driver[pod]) outdated[pod] = node "\t" major
      else found[pod] = node
    } else if (!(pod in nearest) || distance < distances[pod]) {
      nearest[pod] = node "\t" reason
      distances[pod] = distance
    }
  }
}
