# shellcheck shell=bash disable=SC2154  # name and groups of destroy.sh
# Resources in AWS that may outlive a cluster. destroy.sh sources it, which sets `name`, the cluster, and `groups`, its
# placement groups.

# Queries that are made twice.
log_groups=(logs describe-log-groups --log-group-name-prefix "/aws/eks/$name/" --query 'logGroups[].logGroupName')
eksctl_stacks=(cloudformation describe-stacks
  --query "Stacks[?starts_with(StackName,'eksctl-$name-') && StackStatus!='DELETE_COMPLETE'].StackName")
placement_group() {  # NAME
  ids ec2 describe-placement-groups --filters "Name=group-name,Values=$1" --query 'PlacementGroups[].GroupName'
}

# Prints IDs, one per line.
ids() { aws "$@" --output text | tr -s '\t ' '\n' | grep -vxE '|None' || [ "${PIPESTATUS[0]}" = 0 ]; }
# Prints `KIND: ID` for each ID.
listed() {  # KIND COMMAND...
  local found one
  found=$("${@:2}") || return
  for one in $found; do echo "$1: $one"; done
}

print_leftovers() {
  local owned="Name=tag-key,Values=kubernetes.io/cluster/$name" one
  local alive=Name=instance-state-name,Values=pending,running,stopping,stopped
  local interfaces="Name=tag:cluster.k8s.amazonaws.com/name,Values=$name"
  local templates="Name=tag:karpenter.k8s.aws/cluster,Values=$name"
  listed 'EKS cluster' ids eks list-clusters --query "clusters[?@=='$name']" || return
  listed 'CloudFormation stack' ids "${eksctl_stacks[@]}" || return
  listed 'instance' ids ec2 describe-instances --filters "$owned" "$alive" \
    --query 'Reservations[].Instances[].InstanceId' || return
  listed 'EBS volume' ids ec2 describe-volumes --filters "$owned" --query 'Volumes[].VolumeId' || return
  listed 'security group' ids ec2 describe-security-groups --filters "$owned" \
    --query 'SecurityGroups[].GroupId' || return
  listed 'network interface' ids ec2 describe-network-interfaces --filters "$interfaces" \
    --query 'NetworkInterfaces[].NetworkInterfaceId' || return
  listed 'launch template' ids ec2 describe-launch-templates --filters "$templates" \
    --query 'LaunchTemplates[].LaunchTemplateId' || return
  for one in "kubernetes.io/cluster/$name" "elbv2.k8s.aws/cluster,Values=$name"; do
    listed 'load balancer' ids resourcegroupstaggingapi get-resources --tag-filters "Key=$one" \
      --resource-type-filters elasticloadbalancing:loadbalancer --query 'ResourceTagMappingList[].ResourceARN' || return
  done
  listed 'log group' ids "${log_groups[@]}" || return
  for one in ${groups[@]+"${groups[@]}"}; do listed 'placement group' placement_group "$one" || return; done
}

# Prints file systems whose network interfaces keep the network of the cluster from being deleted, and what to do.
# EXPECTED are IDs of those that are deleted with the cluster.
print_blockers() {  # EXPECTED...
  local vpc one target
  vpc=$(ids eks describe-cluster --name "$name" --query cluster.resourcesVpcConfig.vpcId) || return
  [ -n "$vpc" ] || return 0
  for one in $(ids fsx describe-file-systems --query "FileSystems[?VpcId=='$vpc'].FileSystemId"); do
    [[ " $* " == *" $one "* ]] ||
      echo "FSx $one: save its files, then aws fsx delete-file-system --file-system-id $one, or --delete-volumes"
  done
  for one in $(ids efs describe-file-systems --query 'FileSystems[].FileSystemId'); do
    [[ " $* " != *" $one "* ]] || continue
    for target in $(ids efs describe-mount-targets --file-system-id "$one" \
      --query "MountTargets[?VpcId=='$vpc'].MountTargetId"); do
      echo "a mount target of EFS $one, which is kept: aws efs delete-mount-target --mount-target-id $target"
    done
  done
}

# Deletes what the cluster's deletion leaves by design. Resources in use stay, and print_leftovers lists them.
delete_remains() {
  local one
  for one in $(ids "${log_groups[@]}"); do aws logs delete-log-group --log-group-name "$one" || true; done
  for one in ${groups[@]+"${groups[@]}"}; do
    [ -z "$(placement_group "$one")" ] || aws ec2 delete-placement-group --group-name "$one" || true
  done
}
