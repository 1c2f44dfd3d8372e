#!/usr/bin/env bash
# Tests k8s/cluster/terraform with Terraform and mock providers that have the real schemas:
#     terraform_test.sh SOURCE_DIR
# Formats, validates, plans and applies four configurations; a second plan has no changes; destroys all resources;
# detects faults of each kind. Values that only AWS validates are not checked.
# Exit codes: 0 passed, 1 failed, 77 a tool is missing.
set -euo pipefail
source=$1
tools=${DTRAIN_TERRAFORM_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/dtrain/terraform-tools}
command -v terraform >/dev/null || { echo "SKIPPED: there is no terraform"; exit 77; }
version() { awk -v name="terraform-$1" '$1 == "provider" && $2 == name { print $3 }' "$source/k8s/versions.txt"; }
for tool in python/complete "aws-$(version aws).json" "helm-$(version helm).json"; do
  [ -e "$tools/$tool" ] || { echo "SKIPPED: there is no $tool: tests/k8s/terraform/tools.sh fetches it"; exit 77; }
done
work=$(mktemp -d)
servers=()
# shellcheck disable=SC2317  # called by the trap
finish() {
  [ ${#servers[@]} = 0 ] || kill "${servers[@]}" 2>/dev/null || true
  wait
  rm -rf "$work"
}
trap finish EXIT
export CHECKPOINT_DISABLE=1 TF_IN_AUTOMATION=1 TF_INPUT=0 SCHEMAS=$work/schemas TF_CLI_CONFIG_FILE=$work/config

# Restricts the 1,700 resources to the used ones, since Terraform reads all schemas each time.
mkdir "$work/schemas"
python3 - "$source/k8s/cluster/terraform" "$work/schemas" "$tools/aws-$(version aws).json" "$tools/helm-$(version helm).json" <<'PYTHON'
import json, pathlib, sys

text = "".join(path.read_text() for path in pathlib.Path(sys.argv[1]).glob("*.tf"))
for name in sys.argv[3:]:
    schemas = json.loads(pathlib.Path(name).read_text())
    for kind in ("resource", "data"):
        schemas[kind] = {key: value for key, value in schemas[kind].items() if f'{kind} "{key}"' in text}
    (pathlib.Path(sys.argv[2]) / pathlib.Path(name).name).write_text(json.dumps(schemas))
PYTHON

# A filesystem mirror of the providers, under the host name of Terraform's default registry.
host=$(terraform -chdir="$source/k8s/cluster/terraform" providers 2>/dev/null | sed -n 's|.*provider\[\([^/]*\)/hashicorp/aws\].*|\1|p')
[ -n "$host" ] || { echo "terraform_test.sh: Terraform did not print its provider host" >&2; exit 1; }
for name in aws helm; do
  version=$(version $name)
  folder=$work/mirror/$host/hashicorp/$name/$version/linux_amd64
  mkdir -p "$folder"
  printf '#!/bin/sh\nexec "%s" -B "%s" %s "$@"\n' "$tools/python/bin/python" "$source/tests/k8s/terraform/provider.py" \
    "$name" >"$folder/terraform-provider-${name}_v$version"
  chmod +x "$folder/terraform-provider-${name}_v$version"
done
printf 'provider_installation {\n  filesystem_mirror {\n    path = "%s"\n  }\n}\n' "$work/mirror" >"$work/config"
mkdir "$work/k8s" "$work/bin"
cp -R "$source/k8s/cluster" "$source/k8s/charts" "$source/k8s/instance-types.csv" "$source/k8s/instance-prices.csv" \
  "$source/k8s/versions.txt" "$work/k8s/"
root=$work/k8s/cluster/terraform
# Recorders replace the programs of the installation step.
for program in aws kubectl; do printf '#!/bin/sh\necho "%s $*" >>%q\n' $program "$work/calls" >"$work/bin/$program"; done
# shellcheck disable=SC2016  # the recorder's own variable
printf '#!/bin/sh\necho install "$KUBECONFIG" >>%q\n' "$work/calls" >"$work/k8s/cluster/install.sh"
chmod +x "$work"/bin/*
export PATH=$work/bin:$PATH
cd "$root"

fail() {
  echo "terraform_test.sh: $*" >&2
  exit 1
}
terraform fmt -check -diff . || fail "the files are not formatted"
terraform init -backend=false >"$work/log" 2>&1 || fail "init: $(cat "$work/log")"
# One server per provider: by default each command starts several.
reattached=
for name in aws helm; do
  TMPDIR=$work "$tools/python/bin/python" -uB "$source/tests/k8s/terraform/provider.py" $name "$host/hashicorp/$name" --dev \
    >"$work/$name-server" 2>&1 &
  servers+=($!)
  until address=$(sed -n "s/.*TF_REATTACH_PROVIDERS='{\(.*\)}'$/\1/p" "$work/$name-server") && [ -n "$address" ]; do
    kill -0 $! 2>/dev/null || fail "the provider $name did not start: $(cat "$work/$name-server")"
    sleep 0.05
  done
  reattached+=${reattached:+,}$address
done
export TF_REATTACH_PROVIDERS="{$reattached}"
terraform validate >"$work/log" 2>&1 || fail "validate: $(cat "$work/log")"
common=(-var region=us-west-2 -var cluster_name=test -var 'azs=["us-west-2a","us-west-2b","us-west-2c"]'
  -var 'api_access_cidrs=["203.0.113.7/32"]' -no-color)
forms=(
  ""
  "-var import_path=s3://bucket/ml-platform -var profile=default"
  "-var karpenter_enabled=true -var fsx_storage_gib=0"
  "-var cert_manager_enabled=true -var ingress_enabled=true -var login_enabled=true -var trainer_enabled=true -var kueue_enabled=true"
)
# The configurations are applied in sequence, so that transitions are tested, too.
shown=0
for form in "${forms[@]}"; do
  read -ra options <<<"$form"
  terraform apply -auto-approve "${common[@]}" "${options[@]}" >"$work/log" 2>&1 || fail "apply $form: $(tail -40 "$work/log")"
  echo "$(grep '^Apply complete' "$work/log") $form"
  terraform plan -detailed-exitcode "${common[@]}" "${options[@]}" >"$work/log" 2>&1 ||
    fail "the second plan of '$form' changes something: $(cat "$work/log")"
  shown=$((shown + 1))
  terraform show -json >"$work/state$shown.json"
done
[ "$(grep -c '^install /' "$work/calls")" = 1 ] || fail "the components were not installed once: $(cat "$work/calls")"
grep -q 'eks update-kubeconfig --name test --region us-west-2' "$work/calls" || fail "no access: $(cat "$work/calls")"
# Terraform alone does not destroy EFS and the key of its files.
for address in aws_efs_file_system.this aws_kms_key.this; do
  if terraform destroy -auto-approve "${common[@]}" >"$work/log" 2>&1 || ! grep -q "$address" "$work/log"; then
    fail "destroy without destroy.sh deletes $address: $(cat "$work/log")"
  fi
  terraform state rm "$address" >/dev/null
done
terraform destroy -auto-approve "${common[@]}" >"$work/log" 2>&1 || fail "destroy: $(cat "$work/log")"
[ -z "$(terraform state list)" ] || fail "destroy left $(terraform state list)"

# Optional components are off by default, each with its own variable.
charts() { grep -o '"chart":"[^"]*"' "$1" | sort -u | tr '\n' ' '; }
[ "$(charts "$work/state1.json")" = "$(charts "$work/state2.json")" ] || fail "a bucket changes charts"
for chart in cert-manager istiod dex oauth2-proxy kubeflow-trainer kueue; do
  ! charts "$work/state1.json" | grep -q "\"$chart\"" || fail "$chart is installed by default"
  charts "$work/state4.json" | grep -q "\"$chart\"" || fail "$chart is not installed"
done
# Terraform applies the versions and repositories that versions.txt pins.
python3 - "$source/k8s/versions.txt" "$work"/state?.json <<'PYTHON' || fail "other versions than in versions.txt"
import json, pathlib, sys

rows = [line.split() for line in pathlib.Path(sys.argv[1]).read_text().splitlines() if line and line[0] != "#"]
pins = {row[1]: (row[2], row[4]) for row in rows}
found = set()
for path in sys.argv[2:]:
    for one in json.loads(pathlib.Path(path).read_text())["values"]["root_module"]["resources"]:
        values = one["values"]
        if one["type"] == "helm_release" and values.get("repository"):
            chart = values["chart"]
            name = "istio" if chart in ("base", "istiod", "gateway") else chart
            assert (values["version"], values["repository"]) == pins[name], (chart, values["version"])
        elif one["type"] == "aws_eks_cluster":
            name = "eks"
            assert values["version"] == pins[name][0], values["version"]
        elif one["type"] == "aws_fsx_lustre_file_system":
            name = "fsx-lustre"
            assert values["file_system_type_version"] == pins[name][0], values["file_system_type_version"]
        else:
            continue
        found.add(name)
expected = {row[1] for row in rows if row[0] in ("chart", "service")} - {"jupyterhub", "kube-prometheus-stack", "dcgm-exporter"}
assert found == expected, found ^ expected
PYTHON
grep -q 'docker.io/istio' "$work/state4.json" || fail "Istio's images are not from docker.io"
[ "$(grep -o '"take_ownership":true' "$work/state4.json" | wc -l)" = 1 ] || fail "Trainer does not take over its CRDs"
user_data=$(sed 's/.*"user_data":"\([^"]*\)".*/\1/' "$work/state1.json" | base64 -d)
for part in tune.sh config.yaml; do
  [[ $user_data == *"$(cat "$work/k8s/cluster/node/$part")"* ]] || fail "the user data of GPU nodes lacks $part"
done
# GPU node groups have current instance types, and the EFA interfaces of the table: 32 of p5 and 16 of p5en.
types=$(grep -o '"instance_types":\["[gp][^"]*"\]' "$work/state1.json" | sort -u | tr -d '\n')
[ "${types//\"instance_types\":}" = '["g5.xlarge"]["g6e.48xlarge"]["p5.48xlarge"]["p5en.48xlarge"]' ] ||
  fail "GPU node groups: $types"
efa=$(grep -o '"interface_type":"efa"' "$work/state1.json" | wc -l)
[ "$efa" = 48 ] || fail "$efa EFA interfaces, expected 48"
# Workers, with EFA or without, start from zero nodes by the rules of the cluster autoscaler.
scales() { python3 -B "$source/tests/k8s/autoscalers_test.py" --terraform "$1"; }
scales "$work/state1.json" || fail "node groups do not scale from zero"
grep -q 'nodeOverlay' "$work/state3.json" || fail "Karpenter's feature gate NodeOverlay is off"
grep -q aws_fsx_data_repository_association "$work/state2.json" || fail "import_path creates no association"
# Files that jobs delete stay in the bucket, unless asked for.
exported() { grep -o '"auto_export_policy":\[{"events":\[[^]]*\]' "$1" | head -n 1; }
[ "$(exported "$work/state2.json")" = '"auto_export_policy":[{"events":["NEW","CHANGED"]' ] ||
  fail "auto-export: $(exported "$work/state2.json")"
grep -q '"name":"/aws/eks/test/cluster"[^}]*"retention_in_days":30' "$work/state1.json" || fail "logs have no retention"
# Prices are outputs, which a plan shows.
for type in g6e.48xlarge m7i.large; do
  price=$(sed -n "s/^$type,\([0-9.]*\),\([^,]*\),\([^,]*\),.*/\1 (\2, \3)/p" "$work/k8s/instance-prices.csv")
  grep -qF "\"$type\":\"$price\"" "$work/state1.json" || fail "the price of $type is not an output"
done
! grep -q aws_fsx_lustre "$work/state3.json" || fail "fsx_storage_gib=0 creates a file system"
! grep -qiE '"[a-z_]*(secret|password|session_token)[a-z_]*":"[^"]' "$work"/state?.json || fail "the state holds secrets"

if [ -e "$tools/checkov/complete" ]; then
  "$tools/checkov/bin/checkov" --directory "$source/k8s/cluster/terraform" --framework terraform --skip-download --compact \
    --quiet >"$work/log" 2>&1 || fail "checkov: $(cat "$work/log")"
else
  echo "checkov is not installed: tests/k8s/terraform/tools.sh downloads it"
fi

# V100 remains possible. No image with CUDA 12 uses its EFA, unless asked for.
terraform plan "${common[@]}" >"$work/log" 2>&1 \
  -var 'gpu_nodes={v100={instance_type="p3dn.24xlarge"},efa={instance_type="p3dn.24xlarge",efa_interfaces=1}}' ||
  fail "p3dn: $(tail -20 "$work/log")"
efa=$(grep -c 'interface_type *= "efa"' "$work/log")
[ "$efa" = 1 ] || fail "$efa EFA interfaces of p3dn, expected the one of efa_interfaces=1"

terraform plan "${common[@]}" -var import_path=s3://bucket/p -var fsx_export_deletions=true >"$work/log" 2>&1 ||
  fail "fsx_export_deletions: $(tail -20 "$work/log")"
[ "$(grep -c '+ "DELETED"' "$work/log")" = 2 ] || fail "fsx_export_deletions=true exports no deletions"

# Invalid values are rejected.
refused() {  # TEXT OPTION...
  if terraform plan "${common[@]}" "${@:2}" >"$work/log" 2>&1 || ! grep -q "$1" "$work/log"; then
    fail "${*:2} was not refused with '$1': $(cat "$work/log")"
  fi
}
refused "two or three zones" -var 'azs=["us-west-2a"]'
refused "the whole internet" -var 'api_access_cidrs=["0.0.0.0/0"]'
refused "s3://BUCKET/PREFIX" -var import_path=bucket
refused "lower-case letters" -var cluster_name=Test
refused "Expected one of g4dn.12xlarge" -var 'gpu_nodes={new={instance_type="x9.large"}}'
refused "multiple of 2400" -var fsx_storage_gib=1000
refused "a retention that CloudWatch offers" -var log_retention_days=31
broken() {  # EXPRESSION FILE
  cp "$2" "$work/saved"
  sed -i "$1" "$2"
  ! cmp -s "$2" "$work/saved" || fail "$1 changes nothing in $2"
  ! terraform validate >"$work/log" 2>&1 || fail "$1 in $2 was not found"
  cp "$work/saved" "$2"
}
# EXPRESSION FILE TEXT: without the changed line a worker would not start from zero nodes.
stuck() {
  cp "$2" "$work/saved"
  sed -i "$1" "$2"
  ! cmp -s "$2" "$work/saved" || fail "$1 changes nothing in $2"
  terraform plan "${common[@]}" -out="$work/plan" >"$work/log" 2>&1 || fail "$1 in $2: $(cat "$work/log")"
  terraform show -json "$work/plan" >"$work/plan.json"
  ! scales "$work/plan.json" 2>"$work/log" || fail "$1 in $2 was not found"
  grep -q "$3" "$work/log" || fail "$1 in $2: expected '$3': $(cat "$work/log")"
  cp "$work/saved" "$2"
}
stuck '/"vpc.amazonaws.com\/efa" *=/d' nodes.tf 'no vpc.amazonaws.com/efa'
stuck '/"hugepages-2Mi" *=/d' nodes.tf 'no hugepages-2Mi'
stuck 's/node-template.resources/node-template\/resource/' scaling.tf 'no hugepages-2Mi and no vpc.amazonaws.com/efa'
broken 's/cidr_block  /cidr_blocks/' network.tf
broken 's/aws_efs_file_system.this.id/aws_efs_file_system.that.id/' storage.tf
broken 's/role_arn                  = .*//' cluster.tf
broken "s/var.cluster_name/var.clustername/" nodes.tf
echo "4 configurations applied and destroyed"
