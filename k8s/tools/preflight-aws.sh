#!/usr/bin/env bash
# Checks an AWS account for the prerequisites of a cluster. k8s/preflight.sh --aws runs this script:
#     k8s/preflight.sh --aws [--spot] [INSTANCE_TYPE=COUNT...]
# The region comes from $AWS_REGION or the AWS CLI's configuration. INSTANCE_TYPE=COUNT, such as g6e.48xlarge=2, is the
# maximum number of instances in the cluster; --spot means spot instances. The script is read-only. Prints one line to
# stderr for each missing prerequisite.
# Exit codes: 0 nothing is missing; 1 usage; 6 the AWS CLI is not installed. Otherwise the code of the first line:
#   20  credentials are missing or invalid, or no region is set
#   21  the user or role lacks a permission, or may not simulate permissions
#   22  a quota of running instances is too small, or cannot be read
#   23  the region does not offer the instance type
set -uo pipefail
die() {
  echo "preflight.sh: $2" >&2
  exit "$1"
}
# shellcheck source-path=SCRIPTDIR source=../lib/prices.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/prices.sh"
market=on-demand
wanted=()
for argument in "$@"; do
  case $argument in
    --spot) market=spot ;;
    *)
      [[ $argument =~ ^[a-z][a-z0-9-]*\.[a-z0-9-]+=[1-9][0-9]{0,3}$ ]] ||
        die 1 "'$argument': usage: k8s/preflight.sh --aws [--spot] [INSTANCE_TYPE=COUNT...]"
      wanted+=("$market:$argument")
      ;;
  esac
done
command -v aws >/dev/null || die 6 "aws is not installed: k8s/tools/install.sh aws"
export AWS_PAGER=
result=0
lacks() {  # CODE MESSAGE
  echo "preflight.sh: $2" >&2
  [ "$result" != 0 ] || result=$1
}
note() { echo "note: $*" >&2; }

region=${AWS_REGION:-${AWS_DEFAULT_REGION:-$(aws configure get region)}}
[ -n "$region" ] || die 20 "no region is set: export AWS_REGION=us-west-2"
identity=$(aws sts get-caller-identity --query Arn --output text) ||
  die 20 "there are no valid credentials: aws configure, or aws sso login"
note "$identity in $region"
hour=()
for one in "${wanted[@]}"; do
  type=${one#*:}
  [[ $one == spot:* ]] || hour+=("${type%=*}=$((${type#*=} * 60))")
done
[ ${#hour[@]} = 0 ] || note "$(cost_line "cost of an hour" "${hour[@]}")"

# Actions of eksctl, Terraform and the scripts of k8s/, by service.
actions=(
  eks:CreateCluster eks:DeleteCluster eks:DescribeCluster eks:CreateNodegroup eks:CreateAddon eks:CreateAccessEntry
  eks:CreatePodIdentityAssociation eks:TagResource eks:ListClusters
  ec2:CreateVpc ec2:CreateSubnet ec2:CreateNatGateway ec2:AllocateAddress ec2:CreateSecurityGroup
  ec2:CreateLaunchTemplate ec2:CreatePlacementGroup ec2:DeletePlacementGroup ec2:RunInstances
  ec2:DescribeInstanceTypes ec2:CreateTags
  autoscaling:CreateAutoScalingGroup autoscaling:CreateOrUpdateTags
  iam:CreateRole iam:AttachRolePolicy iam:PutRolePolicy iam:PassRole iam:CreateInstanceProfile
  iam:CreateOpenIDConnectProvider iam:CreateServiceLinkedRole
  cloudformation:CreateStack cloudformation:DeleteStack cloudformation:DescribeStacks
  elasticfilesystem:CreateFileSystem elasticfilesystem:CreateMountTarget
  fsx:CreateFileSystem fsx:CreateDataRepositoryAssociation
  sqs:CreateQueue events:PutRule kms:CreateKey logs:CreateLogGroup logs:DeleteLogGroup tag:GetResources
  s3:PutObject s3:GetObject s3:ListBucket ecr:CreateRepository ecr:PutImage
)
# For an assumed-role session, simulates the role. The session's ARN lacks the role's path.
source=$identity
if [[ $identity =~ ^(arn:[a-z-]+):sts::[0-9]+:assumed-role/([^/]+)/ ]]; then
  source=$(aws iam get-role --role-name "${BASH_REMATCH[2]}" --query Role.Arn --output text) || source=
fi
if [[ $identity == *:root ]]; then
  note "this is the account's root user: prefer a role with limited permissions"
elif [ -z "$source" ] ||
  ! denied=$(aws iam simulate-principal-policy --policy-source-arn "$source" --action-names "${actions[@]}" \
    --query "EvaluationResults[?EvalDecision!='allowed'].EvalActionName" --output text); then
  lacks 21 "$identity may not simulate its permissions (iam:GetRole, iam:SimulatePrincipalPolicy)"
else
  for action in $denied; do [ "$action" = None ] || lacks 21 "$identity lacks the permission $action"; done
fi

# Quotas count vCPUs per group of instance families.
quota_of() {  # MARKET INSTANCE_TYPE: the quota's code
  local family=${2%%.*} codes
  case $family in
    p5 | p5e | p5en | p6*) codes="L-417A185B L-C4BD4855" ;;
    p*) codes="L-417A185B L-7212CCBC" ;;
    g* | vt*) codes="L-DB2E81BA L-3819A6DF" ;;
    a* | c* | d* | h* | i* | m* | r* | t* | z*) codes="L-1216C47A L-34B43A08" ;;
    *) return 1 ;;
  esac
  if [ "$1" = spot ]; then echo "${codes#* }"; else echo "${codes% *}"; fi
}
declare -A needed=() types=()
for one in "${wanted[@]}"; do
  kind=${one%%:*}
  type=${one#*:}
  count=${type#*=}
  type=${type%=*}
  vcpus=$(aws ec2 describe-instance-types --region "$region" --instance-types "$type" \
    --query 'InstanceTypes[0].VCpuInfo.DefaultVCpus' --output text 2>/dev/null)
  if ! [[ $vcpus =~ ^[0-9]+$ ]]; then
    lacks 23 "$region does not offer $type"
    continue
  fi
  zones=$(aws ec2 describe-instance-type-offerings --region "$region" --location-type availability-zone \
    --filters "Name=instance-type,Values=$type" --query 'InstanceTypeOfferings[].Location' --output text)
  note "$type: $vcpus vCPUs, in the zones ${zones//$'\t'/ }"
  if ! code=$(quota_of "$kind" "$type"); then
    note "$type: unknown quota: see the EC2 service quotas"
    continue
  fi
  needed[$code]=$((${needed[$code]:-0} + vcpus * count))
  types[$code]="${types[$code]:+${types[$code]}, }$count x $type ($kind)"
done
for code in "${!needed[@]}"; do
  allowed=$(aws service-quotas get-service-quota --region "$region" --service-code ec2 --quota-code "$code" \
    --query Quota.Value --output text 2>/dev/null)
  allowed=${allowed%.*}
  if ! [[ $allowed =~ ^[0-9]+$ ]]; then
    lacks 22 "the quota $code of $region cannot be read (servicequotas:GetServiceQuota)"
  elif [ "$allowed" -lt "${needed[$code]}" ]; then
    lacks 22 "$region allows $allowed vCPUs for ${types[$code]}, which need ${needed[$code]}: aws service-quotas \
request-service-quota-increase --service-code ec2 --quota-code $code --desired-value ${needed[$code]}"
  fi
done
[ "$result" != 0 ] || note "nothing is missing"
exit "$result"
