#!/usr/bin/env bash
# Creates and deletes the CloudFormation stack of cluster.yaml, and waits for completion.
#     STACK=dtrain IMAGE_ID=ami-... KEY_NAME=... SSH_LOCATION=203.0.113.7/32 ZONE=us-west-2a k8s/ec2/stack.sh create
#     STACK=dtrain k8s/ec2/stack.sh hosts >hostfile
#     STACK=dtrain k8s/ec2/stack.sh status | delete
# Optional: EFS_ID (an existing file system without mount targets), INSTANCE_TYPE (default in cluster.yaml; GPU instances
# of k8s/instance-types.csv), SLOTS (ranks per host; default: the GPUs of its type), WORKERS (hosts besides the master),
# TIMEOUT (of create and delete, 3600 seconds) and POLL (polling interval, 10 seconds). Credentials and region come from
# the AWS CLI. Deleting the stack keeps EFS; `create` prints its EFS_ID. `status` prints CloudFormation's stack status,
# or DELETE_COMPLETE without a stack.
# Exit codes: 0 done, also `delete` without a stack; 1 usage, or AWS rejected the request; 4 AWS does not respond; 5 the
# stack failed or was rolled back; 124 timeout.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() {
  echo "stack.sh: $1" >&2
  exit "${2:-1}"
}
# shellcheck source-path=SCRIPTDIR source=../lib/instance-types.sh
. "$here/../lib/instance-types.sh"
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
create() {
  local name id type=()
  for name in IMAGE_ID KEY_NAME SSH_LOCATION ZONE; do [ -n "${!name:-}" ] || die "$name is not set"; done
  if [ -n "${INSTANCE_TYPE:-}" ]; then
    [[ ! $INSTANCE_TYPE =~ ^[pg][0-9] ]] || read_instance INSTANCE_TYPE "$INSTANCE_TYPE"
    type=("ParameterKey=InstanceType,ParameterValue=$INSTANCE_TYPE")
  fi
  id=$(aws cloudformation create-stack --stack-name "$stack" --template-body "file://$here/cluster.yaml" \
    --query StackId --output text --parameters "ParameterKey=ImageId,ParameterValue=$IMAGE_ID" \
    "ParameterKey=KeyName,ParameterValue=$KEY_NAME" "ParameterKey=SshLocation,ParameterValue=$SSH_LOCATION" \
    "ParameterKey=Zone,ParameterValue=$ZONE" "ParameterKey=EfsId,ParameterValue=${EFS_ID:-}" \
    "${type[@]}" "ParameterKey=Workers,ParameterValue=${WORKERS:-1}") || die "the stack $stack could not be created"
  await "$id" CREATE_COMPLETE
  aws cloudformation describe-stacks --stack-name "$id" --output text --query 'Stacks[0].Outputs[].[OutputKey,OutputValue]'
}
remove() {
  local id
  if ! id=$(aws cloudformation describe-stacks --stack-name "$stack" --query 'Stacks[0].StackId' --output text 2>&1); then
    [[ $id == *"does not exist"* ]] || die "$id" 4
    echo "stack.sh: there is no stack $stack" >&2
    return
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
