#!/usr/bin/env bash
# Installs tools for tests of AWS scripts from PyPI into a virtual environment: moto's server (a mock of AWS), the AWS
# CLI, cfn-lint, and parsers of HCL and YAML. Installed tools are not downloaded again.
#     tests/k8s/aws/tools.sh [FOLDER]
# FOLDER is $DTRAIN_AWS_TOOLS by default, else ~/.cache/dtrain/aws-tools; programs are in FOLDER/bin.
# Exit codes: 0 all installed, 77 a download failed.
set -euo pipefail
cache=${1:-${DTRAIN_AWS_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/dtrain/aws-tools}}
pins='moto[server,s3,cloudformation,ec2,efs,iam,sts]==5.2.5 awscli==1.46.3 boto3==1.44.5 cfn-lint==1.58.0
jsonschema==4.26.0 python-hcl2==8.1.4 pyyaml==6.0.3'
if [ "$(cat "$cache/pins" 2>/dev/null)" != "$pins" ]; then
  mkdir -p "$(dirname "$cache")"
  exec 9>"$cache.lock"
  flock 9
  read -r -d '' -a packages <<<"$pins" || true
  if ! { python3 -m venv "$cache" && "$cache/bin/pip" install --quiet --disable-pip-version-check --no-input \
    --timeout 20 --retries 1 "${packages[@]}" && printf '%s\n' "$pins" >"$cache/pins"; }; then
    echo "SKIPPED: there is no moto, AWS CLI or cfn-lint, and they could not be fetched"
    exit 77
  fi
fi
echo "$cache"
