#!/usr/bin/env bash
# Configures the S3 backend of Terraform: writes backend.tf to the root module.
#     k8s/tools/s3-backend.sh BUCKET [REGION [FOLDER]]
# BUCKET must exist. REGION is the bucket's region (default $AWS_REGION), FOLDER the root module (default
# k8s/cluster/terraform). The state is stored in dtrain/terraform.tfstate, encrypted, with an S3 lock file. `terraform
# init` then offers to migrate an existing state.
# Exit codes: 0 done, 1 usage, 4 the bucket does not respond, 6 backend.tf cannot be written or has other content.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() {
  echo "s3-backend.sh: $2" >&2
  exit "$1"
}
[[ $# =~ ^[123]$ ]] || die 1 "usage: k8s/tools/s3-backend.sh BUCKET [REGION [FOLDER]]"
bucket=$1
region=${2:-${AWS_REGION:-${AWS_DEFAULT_REGION:-}}}
folder=${3:-$here/../cluster/terraform}
[[ $bucket =~ ^[a-z0-9][-a-z0-9.]{1,61}[a-z0-9]$ ]] || die 1 "'$bucket' is not a bucket name"
[[ $region =~ ^[a-z]{2}(-[a-z]+)+-[0-9]$ ]] || die 1 "'$region' is not a region: pass it, or set AWS_REGION"
[ -d "$folder" ] || die 1 "no such folder: $folder"
command -v aws >/dev/null || die 6 "aws is not installed: k8s/tools/install.sh aws"
aws s3api head-bucket --bucket "$bucket" --region "$region" >/dev/null ||
  die 4 "the bucket $bucket does not respond in $region: aws s3 mb s3://$bucket --region $region"
if [ "$(aws s3api get-bucket-versioning --bucket "$bucket" --region "$region" --query Status --output text)" != Enabled ]; then
  echo "note: the bucket $bucket has no versioning, so an overwritten state is lost:" \
    "aws s3api put-bucket-versioning --bucket $bucket --versioning-configuration Status=Enabled" >&2
fi
text="# Written by k8s/tools/s3-backend.sh.
terraform {
  backend \"s3\" {
    bucket       = \"$bucket\"
    key          = \"dtrain/terraform.tfstate\"
    region       = \"$region\"
    encrypt      = true
    use_lockfile = true
  }
}"
file=$folder/backend.tf
if [ -f "$file" ] && [ "$(cat "$file")" != "$text" ]; then
  die 6 "$file names another state: remove the file first if that state is no longer needed"
fi
if ! { echo "$text" >"$file.new" && mv "$file.new" "$file"; }; then die 6 "$file cannot be written"; fi
echo "$file: now run terraform -chdir=$folder init"
