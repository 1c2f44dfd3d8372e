#!/usr/bin/env bash
# Creates and deletes the CloudFormation stack of cluster.yaml, and waits for completion.
#     STACK=dtrain KEY_NAME=... SSH_LOCATION=203.0.113.7/32 ZONE=us-west-2a k8s/ec2/stack.sh create
#     STACK=dtrain k8s/ec2/stack.sh hosts >hostfile
#     STACK=dtrain k8s/ec2/stack.sh status | delete
# Optional: IMAGE, the newest AMI of a system: dlami (default: AWS's Deep Learning Base AMI with Ubuntu 24.04 and
# NVIDIA's driver), debian13 or debian12, which have no driver; or IMAGE_ID, any AMI with Ubuntu or Debian. EFS_ID (an
# existing file system without mount targets), INSTANCE_TYPE (default in cluster.yaml; GPU instances of
# k8s/instance-types.csv), SLOTS (ranks per host; default: the GPUs of its type), WORKERS (hosts besides the master),
# TIMEOUT (of create and delete, 3600 seconds) and POLL (polling interval, 10 seconds). Credentials and region come
# from the AWS CLI. Deleting the stack keeps EFS; `create` prints its EFS_ID. `delete` refuses while an FSx file
# system is in the stack's network. `status` prints CloudFormation's stack status, or DELETE_COMPLETE without a stack.
# Exit codes: 0 done, also `delete` without a stack; 1 usage, or AWS rejected the request; 4 AWS does not respond; 5
# the stack failed, was rolled back, or has an FSx file system; 124 timeout.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() {
  echo "stack.sh: $1" >&2
  exit "${2:-1}"
}
# shellcheck source-path=SCRIPTDIR source=../lib/instance-types.sh
. "$here/../lib/instance-types.sh"
# shellcheck source-path=SCRIPTDIR source=../lib/prices.sh
. "$here/../lib/prices.sh"
stack=${STACK:-dtrain}
poll=${POLL:-10}
timeout=${TIMEOUT:-3600}
[[ $poll =~ ^[1-9][0-9]{0,3}$ ]] || die "POLL is '$poll': expected seconds from 1"
[[ $timeout =~ ^[1-9][0-9]{0,6}$ ]] || die "TIMEOUT is '$timeout': expected seconds from 1"

status_of() {  # STACK_OR_ID; prints DELETE_COMPLETE where there is none
  local answer
  if answer=$(aws cloudformation describe-stacks --stack-name "$1" --query 'Stacks[0].StackStatus' --output text 2>&1)
  then
    echo "$answer"
  elif [[ $answer == *"does not exist"* ]]; then
    echo DELETE_COMPLETE
  else
    echo "stack.sh: $answer" >&2
    return 4
  fi
}
await() {  # ID WANTED
  local status last='' failed=0 begin=$SECONDS
  while :; do
    if status=$(status_of "$1"); then
      failed=0
      [ "$status" = "$last" ] || echo "stack.sh: $status" >&2
      last=$status
      case $status in
        "$2") return ;;
        *ROLLBACK* | *FAILED | DELETE_*)
          if [ "$2" != DELETE_COMPLETE ] || [ "$status" = DELETE_FAILED ]; then
            aws cloudformation describe-stack-events --stack-name "$1" --output text --query \
              "StackEvents[?contains(ResourceStatus,'FAILED')].[LogicalResourceId,ResourceStatusReason]" >&2 || true
            die "$stack: $status" 5
          fi
          ;;
      esac
    else
      failed=$((failed + 1))
      [ $failed -lt 5 ] || die "AWS does not respond" 4
    fi
    [ $((SECONDS - begin)) -lt "$timeout" ] || die "$stack is $last after $timeout s, not $2" 124
    sleep "$poll"
  done
}
# AWS and Debian publish the newest AMI of each region as a public parameter.
find_image() {  # sets image and device
  local parameter
  case ${IMAGE:-dlami} in
    dlami) parameter=/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id ;;
    debian1[23]) parameter=/aws/service/debian/release/${IMAGE#debian}/latest/amd64 ;;
    *) die "IMAGE is '$IMAGE': expected dlami, debian13 or debian12; or set IMAGE_ID=ami-..." ;;
  esac
  image=${IMAGE_ID:-}
  if [ -z "$image" ]; then
    image=$(aws ssm get-parameter --name "$parameter" --query Parameter.Value --output text) ||
      die "there is no AMI $parameter: set IMAGE_ID=ami-..."
    echo "stack.sh: the AMI of ${IMAGE:-dlami} is $image" >&2
  fi
  device=$(aws ec2 describe-images --image-ids "$image" --query 'Images[0].RootDeviceName' --output text) ||
    die "there is no AMI $image in this region"
  [[ $device =~ ^/dev/[a-z0-9]+$ ]] || die "the AMI $image has no root device that is a disk: '$device'"
}
create() {
  local name id image device type=() instance
  for name in KEY_NAME SSH_LOCATION ZONE; do [ -n "${!name:-}" ] || die "$name is not set"; done
  [[ ${WORKERS:-1} =~ ^[1-9][0-9]?$ ]] || die "WORKERS is '$WORKERS': expected 1 to 63"
  instance=$(sed -nE 's/^  InstanceType: .*Default: ([a-z0-9.-]+).*/\1/p' "$here/cluster.yaml")
  if [ -n "${INSTANCE_TYPE:-}" ]; then
    [[ ! $INSTANCE_TYPE =~ ^[pg][0-9] ]] || read_instance INSTANCE_TYPE "$INSTANCE_TYPE"
    type=("ParameterKey=InstanceType,ParameterValue=$INSTANCE_TYPE")
    instance=$INSTANCE_TYPE
  fi
  find_image
  if [[ $instance =~ ^[pg][0-9] && ${IMAGE:-} == debian* ]]; then
    echo "stack.sh: note: Debian's AMI has no driver for the GPUs of $instance: install it on each host" >&2
  fi
  echo "stack.sh: $(cost_line "cost of an hour" "$instance=$((60 * (1 + ${WORKERS:-1})))")" >&2
  id=$(aws cloudformation create-stack --stack-name "$stack" --template-body "file://$here/cluster.yaml" \
    --query StackId --output text --parameters "ParameterKey=ImageId,ParameterValue=$image" \
    "ParameterKey=RootDevice,ParameterValue=$device" \
    "ParameterKey=KeyName,ParameterValue=$KEY_NAME" "ParameterKey=SshLocation,ParameterValue=$SSH_LOCATION" \
    "ParameterKey=Zone,ParameterValue=$ZONE" "ParameterKey=EfsId,ParameterValue=${EFS_ID:-}" \
    "${type[@]}" "ParameterKey=Workers,ParameterValue=${WORKERS:-1}") || die "the stack $stack could not be created"
  await "$id" CREATE_COMPLETE
  aws cloudformation describe-stacks --stack-name "$id" --output text --query 'Stacks[0].Outputs[].[OutputKey,OutputValue]'
}
remove() {
  local id network systems
  if ! id=$(aws cloudformation describe-stacks --stack-name "$stack" --query 'Stacks[0].StackId' --output text 2>&1); then
    [[ $id == *"does not exist"* ]] || die "$id" 4
    echo "stack.sh: there is no stack $stack" >&2
    return
  fi
  # Its network interfaces would keep the subnet.
  network=$(aws cloudformation describe-stack-resources --stack-name "$id" --logical-resource-id Vpc \
    --query 'StackResources[0].PhysicalResourceId' --output text) || network=None
  if [[ $network == vpc-* ]]; then
    systems=$(aws fsx describe-file-systems --query "FileSystems[?VpcId=='$network'].FileSystemId" --output text) ||
      systems=
    [[ $systems != fs-* ]] || die "${systems//$'\t'/ } is in the network of $stack: save its files, then delete it: \
aws fsx delete-file-system --file-system-id ${systems%%$'\t'*}" 5
  fi
  aws cloudformation delete-stack --stack-name "$id" || die "the stack $stack could not be deleted"
  await "$id" DELETE_COMPLETE
}
hosts() {
  local found address type
  [[ ${SLOTS:-1} =~ ^[1-9][0-9]{0,2}$ ]] || die "SLOTS is '$SLOTS': expected the ranks of a host"
  found=$(aws ec2 describe-instances --filters "Name=tag:Name,Values=$stack-master,$stack-worker" \
    Name=instance-state-name,Values=running --query 'Reservations[].Instances[].[PrivateIpAddress,InstanceType]' --output text) ||
    die "AWS does not respond" 4
  [ -n "$found" ] || die "the stack $stack has no running hosts"
  sort -V <<<"$found" | while read -r address type; do
    [ -n "${SLOTS:-}" ] || find_instance "$type" || die "SLOTS is not set, and $type is not in k8s/instance-types.csv"
    echo "$address slots=${SLOTS:-$instance_gpus}"
  done
}
case ${1:-} in
  create) create ;;
  delete) remove ;;
  status) status_of "$stack" ;;
  hosts) hosts ;;
  *) die "usage: k8s/ec2/stack.sh create | status | hosts | delete" ;;
esac
