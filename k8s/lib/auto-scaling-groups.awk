# Nodes that the cluster autoscaler can add, in the format of fit.awk: auto-scaling-groups.awk INSTANCE-TYPES.csv GROUPS.
# GROUPS is the answer of `aws autoscaling describe-auto-scaling-groups` in the format of json-lines.awk. CPU, memory and
# GPUs are those of the first instance type; other resources, labels and taints are tags. Lines eks CLUSTER GROUP name a
# node group of EKS. Sizes of types that are not in the table are unknown. Needs instance-types.awk.
split($1, part, "|") && part[2] == "AutoScalingGroups" {
  at = part[3]
  groups = at + 1
  if (part[4] == "AutoScalingGroupName") name[at] = $2
  if (part[4] == "MaxSize") most[at] = $2
  if ($1 ~ /\|MixedInstancesPolicy\|LaunchTemplate\|Overrides\|0\|InstanceType$/) type[at] = $2
  if (part[4] == "Tags" && part[6] == "Key") keys[at] = keys[at] part[5] "\t" $2 "\n"
  if (part[4] == "Tags" && part[6] == "Value") values[at, part[5]] = $2
}
END { for (g = 0; g < groups; g++) print_group(g) }

function print_group(at,   n, i, line, part, tag, kind, cluster, group, lines) {
  n = split(keys[at], line, "\n")
  for (i = 1; i < n; i++) {
    split(line[i], part, "\t")
    kind = part[2]
    tag = values[at, part[1]]
    if (kind == "eks:cluster-name") cluster = tag
    if (kind == "eks:nodegroup-name") group = tag
    if (sub(/^k8s.io\/cluster-autoscaler\/node-template\/resources\//, "", kind)) lines = lines "has\t" kind "\t" tag "\n"
    else if (sub(/^k8s.io\/cluster-autoscaler\/node-template\/label\//, "", kind)) lines = lines "label\t" kind "\t" tag "\n"
    else if (sub(/^k8s.io\/cluster-autoscaler\/node-template\/taint\//, "", kind) && match(tag, /:[A-Za-z]+$/))
      lines = lines "taint\t" kind "\t" substr(tag, 1, RSTART - 1) "\t" substr(tag, RSTART + 1) "\n"
  }
  print "node\tnode group " (group == "" ? name[at] : group)
  print "most\t" most[at]
  print "label\tnode.kubernetes.io/instance-type\t" (type[at] == "" ? "*" : type[at])
  print "label\ttopology.kubernetes.io/zone\t*\nlabel\tkubernetes.io/os\tlinux\nlabel\tkubernetes.io/arch\t*"
  print "has\tpods\t110"
  if (type[at] in row) {
    print "has\tcpu\t" cell(type[at], "vcpus") "\nhas\tmemory\t" cell(type[at], "memory_gib") "Gi"
    print "has\tnvidia.com/gpu\t" cell(type[at], "gpus")
  } else {
    print "has\tcpu\t1Pi\nhas\tmemory\t1Pi\nhas\tnvidia.com/gpu\t1Pi"
  }
  printf "%s", lines
  if (group != "" && cluster != "") print "label\teks.amazonaws.com/nodegroup\t" group "\neks\t" cluster "\t" group
}
