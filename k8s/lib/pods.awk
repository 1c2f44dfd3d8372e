# Lists the pods of a manifest in the format of json-lines.awk, as lines POD<tab>KEY<tab>...:
#     count NUMBER            pods of this kind
#     need RESOURCE AMOUNT    requests of a pod; limit RESOURCE AMOUNT its limits; shm AMOUNT its volumes in memory
#     select LABEL VALUE      node selector
#     tolerate KEY VALUE EFFECT    * stands for any
#     image IMAGE
# POD is kind, name and role. Amounts are in thousandths. Needs quantities.awk.
BEGIN { FS = "\t" }
{ value[$1] = $2 }
match($1, /\|(initC|c)ontainers\|[0-9]+\|/) {
  prefix = substr($1, 1, RSTART - 1)
  if (!(prefix in containers)) prefixes[++last] = prefix
  container = substr($1, RSTART + 1, RLENGTH - 2)
  field = substr($1, RSTART + RLENGTH)
  if (index(containers[prefix], container "\n") == 0) containers[prefix] = containers[prefix] container "\n"
  if (field ~ /^resources\|(limits|requests)\|/) {
    resource = field
    sub(/^[a-z]+\|[a-z]+\|/, "", resource)
    if (index(resources[prefix], resource "\n") == 0) resources[prefix] = resources[prefix] resource "\n"
  }
}
match($1, /\|nodeSelector\|/) {
  prefix = substr($1, 1, RSTART - 1)
  selectors[prefix] = selectors[prefix] substr($1, RSTART + RLENGTH) "\t" $2 "\n"
}
match($1, /\|tolerations\|[0-9]+\|/) {
  prefix = substr($1, 1, RSTART - 1)
  at = substr($1, 1, RSTART + RLENGTH - 1)
  if (index(tolerations[prefix], at "\n") == 0) tolerations[prefix] = tolerations[prefix] at "\n"
}
$1 ~ /\|volumes\|[0-9]+\|emptyDir\|medium$/ && $2 == "Memory" {
  prefix = $1
  sub(/\|volumes\|[0-9]+\|emptyDir\|medium$/, "", prefix)
  at = $1
  sub(/medium$/, "sizeLimit", at)
  in_memory[prefix] = in_memory[prefix] at "\n"
}
$1 ~ /\|spec\|trainer\|numNodes$/ { nodes = $2 }
$1 ~ /\|spec\|trainer\|image$/ { trainer = $2 }

function description(prefix,   part, role) {
  split(prefix, part, "|")
  if (part[3] ~ /ReplicaSpecs$/) role = " " part[4]
  if (part[5] == "replicatedJobs") role = " " value[part[1] "|spec|template|spec|replicatedJobs|" part[6] "|name"]
  return value[part[1] "|kind"] " " value[part[1] "|metadata|name"] role
}
function pods(prefix,   owner) {
  owner = prefix
  if (prefix ~ /\|replicatedJobs\|/) {
    sub(/\|template\|spec\|template\|spec$/, "", owner)
    return value[owner "|name"] == "node" && nodes ? nodes : 1
  }
  sub(/\|template\|spec$/, "", owner)
  if ((owner "|replicas") in value) return value[owner "|replicas"]
  return (owner "|parallelism") in value ? value[owner "|parallelism"] : 1
}
# Sum of the containers, or the maximum of the init containers if that is more. A limit without a request is a request.
function total(prefix, resource, which,   i, n, part, at, one, sum, most) {
  n = split(containers[prefix], part, "\n")
  for (i = 1; i < n; i++) {
    at = prefix "|" part[i] "|resources|"
    one = (at which "|" resource) in value ? value[at which "|" resource] : value[at "limits|" resource]
    one = one == "" ? 0 : amount(one)
    if (part[i] ~ /^init/) most = one > most ? one : most
    else sum += one
  }
  return most > sum ? most : sum
}
function print_lines(pod, key, lines,   i, n, line) {
  n = split(lines, line, "\n")
  for (i = 1; i < n; i++) print pod "\t" key "\t" line[i]
}
function print_pod(prefix,   i, n, line, pod, at, shm, image, images) {
  pod = description(prefix)
  print pod "\tcount\t" pods(prefix)
  n = split(resources[prefix], line, "\n")
  for (i = 1; i < n; i++) {
    printf "%s\tneed\t%s\t%.0f\n", pod, line[i], total(prefix, line[i], "requests")
    printf "%s\tlimit\t%s\t%.0f\n", pod, line[i], total(prefix, line[i], "limits")
  }
  print_lines(pod, "select", selectors[prefix])
  n = split(tolerations[prefix], line, "\n")
  for (i = 1; i < n; i++) {
    at = line[i]
    print pod "\ttolerate\t" (value[at "key"] == "" ? "*" : value[at "key"]) "\t" \
      (value[at "operator"] == "Exists" ? "*" : value[at "value"]) "\t" (value[at "effect"] == "" ? "*" : value[at "effect"])
  }
  n = split(containers[prefix], line, "\n")
  for (i = 1; i < n; i++) {
    image = value[prefix "|" line[i] "|image"]
    if (image == "" && prefix ~ /\|replicatedJobs\|/) image = trainer  # a TrainJob sets it
    if (image != "" && index(images, image "\n") == 0) images = images image "\n"
  }
  print_lines(pod, "image", images)
  n = split(in_memory[prefix], line, "\n")
  for (i = 1; i < n; i++) shm += value[line[i]] == "" ? 0 : amount(value[line[i]])
  if (shm) printf "%s\tshm\t%.0f\n", pod, shm
}
END { for (i = 1; i <= last; i++) print_pod(prefixes[i]) }
