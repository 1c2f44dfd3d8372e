# Nodes that Karpenter can add, in the format of fit.awk: karpenter.awk INSTANCE-TYPES.csv POOLS. POOLS has lines
# pool NAME or overlay NAME, each followed by its class (the API group of the node class), label, taint, limit, has, ready
# and require KEY OPERATOR VALUES.
# Requirements other than those on instance types are taken as met. Sizes of types that are not in the table are unknown.
# Needs instance-types.awk.
$1 == "pool" || $1 == "overlay" {
  owner = $1 " " $2
  if ($1 == "pool") pools[++pools_last] = $2
  else overlays[++overlays_last] = $2
}
$1 == "label" || $1 == "taint" || $1 == "limit" || $1 == "has" { lines[owner] = lines[owner] $0 "\n" }
$1 == "class" { class[owner] = $2 }
$1 == "ready" { ready[owner] = $2 }
$1 == "require" { requirements[owner] = requirements[owner] $2 "\t" $3 "\t " $4 "\n" }
END {
  for (p = 1; p <= pools_last; p++) {
    for (t = 1; t <= last; t++) if (allows("pool " pools[p], types[t], pools[p])) print_known(pools[p], types[t])
    print_unknown(pools[p])
  }
}

function label_of(key, type, pool,   family) {
  family = type
  sub(/[.].*/, "", family)
  if (key == "karpenter.sh/nodepool") return pool
  if (key == "node.kubernetes.io/instance-type") return type
  if (key == "karpenter.k8s.aws/instance-family") return family
  if (key == "karpenter.k8s.aws/instance-size") return substr(type, length(family) + 2)
  if (key == "karpenter.k8s.aws/instance-category") return match(family, /^[a-z]+/) ? substr(family, 1, RLENGTH) : ""
  if (key == "karpenter.k8s.aws/instance-gpu-name") return tolower(cell(type, "gpu"))
  if (key == "karpenter.k8s.aws/instance-gpu-count") return cell(type, "gpus")
  return ""
}
function allows(owner, type, pool,   i, n, line, part, label, listed) {
  n = split(requirements[owner], line, "\n")
  for (i = 1; i < n; i++) {
    split(line[i], part, "\t")
    label = label_of(part[1], type, pool)
    if (label == "") continue
    listed = index(part[3] " ", " " label " ") > 0
    if ((part[2] == "In" && !listed) || (part[2] == "NotIn" && listed)) return 0
  }
  return 1
}
function print_node(pool, title, type) {
  print "node\tNodePool " pool ", " title
  print "label\tnode.kubernetes.io/instance-type\t" type
  print "label\tkarpenter.sh/nodepool\t" pool
  print "label\tkarpenter.sh/capacity-type\t*\nlabel\ttopology.kubernetes.io/zone\t*"
  print "label\tkubernetes.io/os\t*\nlabel\tkubernetes.io/arch\t*"
  printf "%s", lines["pool " pool]
  print "has\tpods\t110\nhas\tephemeral-storage\t1Pi"
}
function print_known(pool, type,   o, owner) {
  print_node(pool, type, type)
  print "has\tcpu\t" cell(type, "vcpus") "\nhas\tmemory\t" cell(type, "memory_gib") "Gi"
  print "has\tnvidia.com/gpu\t" cell(type, "gpus") "\nhas\tvpc.amazonaws.com/efa\t" cell(type, "efa_interfaces")
  if (class["pool " pool] == "eks.amazonaws.com") return
  for (o = 1; o <= overlays_last; o++) {
    owner = "overlay " overlays[o]
    if (ready[owner] != "False" && allows(owner, type, pool)) printf "%s", lines[owner]
  }
}
# Types outside of the table, if the pool may have any.
function print_unknown(pool,   i, n, m, line, part, type, listed) {
  n = split(requirements["pool " pool], line, "\n")
  for (i = 1; i < n; i++) {
    split(line[i], part, "\t")
    if (part[1] != "node.kubernetes.io/instance-type" || part[2] != "In") continue
    listed = 1
    m = split(part[3], type, " ")
    for (; m > 0; m--) if (!(type[m] in row)) print_unlimited(pool, type[m], type[m])
  }
  if (!listed) print_unlimited(pool, "another instance type", "?")
}
function print_unlimited(pool, title, type) {
  print_node(pool, title, type)
  print "has\tcpu\t1Pi\nhas\tmemory\t1Pi\nhas\tnvidia.com/gpu\t1Pi\nhas\tvpc.amazonaws.com/efa\t1Pi"
}
