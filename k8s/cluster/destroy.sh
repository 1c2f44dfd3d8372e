#!/usr/bin/env bash
# Removes a cluster with all that eksctl or Terraform, install.sh and Kubernetes made for it, and lists what is left.
#     k8s/cluster/destroy.sh [--save FOLDER=BUCKET[/PREFIX]]... [--no-save] [--delete-volumes] [--yes] eksctl FILE
#     k8s/cluster/destroy.sh [OPTION...] terraform [ARGUMENT...]
# FILE is the configuration with which eksctl created the cluster. ARGUMENTs are arguments of `terraform apply`, such as
# -var cluster_name=NAME; Terraform runs in k8s/cluster/terraform.
#   --yes             deletes; without it the script only lists what it would delete and keep
#   --save            first copies FOLDER of a mounted claim by k8s/data/save-results.sh; if that fails, stops
#   --no-save         there is nothing to save; --yes needs --save or --no-save
#   --delete-volumes  also deletes volumes that Kubernetes provisioned with the policy Retain, and Terraform's EFS
# Deletes, in this order: jobs and other pods in namespaces with claims, load balancers, claims and their volumes by
# reclaim policy, Karpenter's nodes, the cluster, placement groups of FILE, the control plane's logs. Existing volumes,
# which Kubernetes did not provision, are kept. Another kubeconfig than yours is used. Run it again after a failure.
# Exit codes: 0 removed; volumes kept by policy are listed; 1 usage; 3 file systems in the cluster's network, which must
# be removed first, and nothing was deleted; 4 AWS or the cluster does not respond; 5 eksctl or Terraform failed; 6 a
# tool is missing; 7 a resource is left that should not be; --save: the codes of save-results.sh.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
say() { echo "destroy.sh: $*" >&2; }
die() {
  say "$2"
  exit "$1"
}
usage='usage: k8s/cluster/destroy.sh [--save FOLDER=BUCKET[/PREFIX]] [--no-save] [--delete-volumes] [--yes] '
usage+='eksctl FILE | terraform [ARGUMENT...]'
saves=() save=asked yes='' delete_volumes=''
while [[ ${1:-} == --* ]]; do
  case $1 in
    --yes) yes=yes ;;
    --no-save) save=none ;;
    --delete-volumes) delete_volumes=yes ;;
    --save)
      [[ ${2:-} == ?*=?* ]] || die 1 "--save needs FOLDER=BUCKET[/PREFIX]"
      [ -d "${2%=*}" ] || die 1 "--save $2: ${2%=*} is not a folder: mount the claim first"
      saves+=("$2")
      shift
      ;;
    *) die 1 "$usage" ;;
  esac
  shift
done
maker=${1:-}
[ $# = 0 ] || shift
case $maker in
  eksctl) [[ $# = 1 && -f $1 ]] || die 1 "eksctl needs the file with which the cluster was created" ;;
  terraform) ;;
  *) die 1 "$usage" ;;
esac
[ -z "$yes" ] || [ ${#saves[@]} != 0 ] || [ $save = none ] ||
  die 1 "what is to be saved? --save FOLDER=BUCKET/PREFIX for each folder with results, or --no-save"
for tool in aws kubectl "$maker"; do
  command -v "$tool" >/dev/null || die 6 "$tool is not installed: k8s/tools/install.sh $tool"
done
export AWS_PAGER=

# Name and region of the cluster, and whether its network is deleted with it.
groups=() makes_network=yes
if [ "$maker" = eksctl ]; then
  field() { sed -nE "/^metadata:/,/^[^ ]/s/^  $1: *\"?([^\" ]+)\"?.*/\1/p" "$2" | head -n 1; }
  name=$(field name "$1") region=$(field region "$1")
  ! sed -n '/^vpc:/,/^[^ ]/p' "$1" | grep -qE '^  (id|subnets):' || makes_network=
  mapfile -t groups < <(sed -nE 's/.*groupName: *"?([A-Za-z0-9_-]+).*/\1/p' "$1" | sort -u)
  expected="$1: expected metadata.name and metadata.region"
else
  output() { terraform -chdir="$here/terraform" output -raw "$1" 2>/dev/null || true; }
  name=$(output cluster_name) region=$(output region)
  expected="the state of $here/terraform has no cluster: terraform init, or nothing was applied"
fi
[[ $name =~ ^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$ && $region =~ ^[a-z]{2}(-[a-z]+)+-[0-9]$ ]] || die 1 "$expected"
export AWS_REGION=$region AWS_DEFAULT_REGION=$region
aws sts get-caller-identity --query Arn --output text >/dev/null || die 4 "AWS does not respond"
work=$(mktemp -d) || die 6 "no temporary folder could be created"
trap 'rm -rf "$work"' EXIT
export KUBECONFIG=$work/kubeconfig
# shellcheck source-path=SCRIPTDIR source=leftovers.sh
. "$here/leftovers.sh"

reachable=
if aws eks describe-cluster --name "$name" >"$work/log" 2>&1; then
  { aws eks update-kubeconfig --name "$name" --kubeconfig "$KUBECONFIG" &&
    kubectl --request-timeout=20s get --raw /version; } >"$work/log" 2>&1 ||
    die 4 "the cluster $name does not respond, so that its volumes and load balancers are not known: $(tail -n 1 \
      "$work/log")"
  reachable=yes
elif ! grep -q ResourceNotFoundException "$work/log"; then
  die 4 "the cluster $name: $(tail -n 1 "$work/log")"
fi

# Volumes: name, policy, driver, handle, provisioner, namespace and name of the claim.
columns='N:.metadata.name,P:.spec.persistentVolumeReclaimPolicy,D:.spec.csi.driver,H:.spec.csi.volumeHandle'
columns+=',B:.metadata.annotations.pv\.kubernetes\.io/provisioned-by,S:.spec.claimRef.namespace,C:.spec.claimRef.name'
volumes=() balancers=() kept=() gone=()
list_objects() {
  local place='S:.metadata.namespace,N:.metadata.name'
  kubectl get pv --no-headers -o custom-columns="$columns" >"$work/volumes" &&
    kubectl get services --all-namespaces --no-headers -o custom-columns="T:.spec.type,$place" >"$work/services" &&
    kubectl get ingresses --all-namespaces --no-headers -o custom-columns="$place" >"$work/ingresses" || return
  mapfile -t volumes <"$work/volumes"
  mapfile -t balancers < <(awk '$1 == "LoadBalancer" { print "service", $2, $3 }' "$work/services"
    awk 'NF == 2 { print "ingress", $1, $2 }' "$work/ingresses")
}
is_deleted() {  # POLICY PROVISIONER
  [ "$2" != '<none>' ] && { [ "$1" = Delete ] || [ -n "$delete_volumes" ]; }
}
show_objects() {
  local verb=would row volume policy driver handle by namespace claim
  [ -z "$yes" ] || verb=will
  for row in ${balancers[@]+"${balancers[@]}"}; do say "$verb be deleted: load balancer of $row"; done
  for row in ${volumes[@]+"${volumes[@]}"}; do
    read -r volume policy driver handle by namespace claim <<<"$row"
    if is_deleted "$policy" "$by"; then
      say "$verb be deleted: volume $volume, $driver $handle, claim $namespace/$claim"
      gone+=("${handle%%:*}")
    elif [ "$handle" != '<none>' ] && [[ " $efs $fsx " != *" ${handle%%:*} "* ]]; then
      kept+=("$driver $handle, claim $namespace/$claim, $policy")
    fi
  done
  if [ -n "$efs" ]; then
    if [ -z "$delete_volumes" ]; then
      kept+=("EFS $efs and its KMS key $key, of Terraform")
    else
      say "$verb be deleted: EFS $efs and, after 7 days, its KMS key $key, of Terraform"
    fi
  fi
  [ -z "$fsx" ] || say "$verb be deleted: FSx for Lustre $fsx, of Terraform; S3 has only what was exported"
}

delete_workloads() {  # of namespaces with claims, since claims in use are not deleted
  local kinds=() kind namespace namespaces
  for kind in mpijobs.kubeflow.org pytorchjobs.kubeflow.org tfjobs.kubeflow.org trainjobs.trainer.kubeflow.org \
    jobsets.jobset.x-k8s.io cronjobs.batch jobs.batch deployments.apps statefulsets.apps daemonsets.apps pods; do
    ! grep -qx "$kind" <<<"$known" || kinds+=("$kind")
  done
  namespaces=$(printf '%s\n' "${volumes[@]}" | awk '$6 != "<none>" && $6 != "kube-system" { print $6 }' | sort -u)
  for namespace in $namespaces; do
    kubectl delete --namespace "$namespace" "$(IFS=, && echo "${kinds[*]}")" --all --wait --timeout=10m || return
  done
}
delete_objects() {
  local row volume policy driver handle by namespace claim kind known waited=()
  known=$(kubectl api-resources -o name) || return
  [ ${#volumes[@]} = 0 ] || delete_workloads || return
  for row in ${balancers[@]+"${balancers[@]}"}; do
    read -r kind namespace claim <<<"$row"
    kubectl delete "$kind" --namespace "$namespace" "$claim" --ignore-not-found --wait --timeout=10m || return
  done
  for row in ${volumes[@]+"${volumes[@]}"}; do
    read -r volume policy driver handle by namespace claim <<<"$row"
    is_deleted "$policy" "$by" || continue
    [ "$policy" = Delete ] ||
      kubectl patch pv "$volume" -p '{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}' || return
    [ "$claim" = '<none>' ] ||
      kubectl delete pvc --namespace "$namespace" "$claim" --ignore-not-found --wait --timeout=10m || return
    waited+=("pv/$volume")
  done
  [ ${#waited[@]} = 0 ] || kubectl wait --for=delete "${waited[@]}" --timeout=20m || return
  # Karpenter's nodes are not the cluster's, and would survive it.
  for kind in nodepools.karpenter.sh nodeclaims.karpenter.sh ec2nodeclasses.karpenter.k8s.aws; do
    ! grep -qx "$kind" <<<"$known" || kubectl delete "$kind" --all --wait --timeout=20m || return
  done
}

# Terraform destroys neither its EFS nor the key that decrypts it (prevent_destroy): both leave the state first.
efs='' key='' fsx=''
if [ "$maker" = terraform ]; then efs=$(output efs_id) fsx=$(output fsx_id) key=$(output kms_key_id); fi
destroy_cluster() {
  local address
  if [ "$maker" = eksctl ]; then
    # Stacks are left if an earlier run failed.
    if [ -n "$reachable" ] || [ -n "$(ids "${eksctl_stacks[@]}")" ]; then
      eksctl delete cluster -f "$1" --wait --disable-nodegroup-eviction
    fi
    return
  fi
  for address in aws_efs_file_system.this aws_kms_key.this; do
    ! terraform -chdir="$here/terraform" state list "$address" | grep -q . ||
      terraform -chdir="$here/terraform" state rm "$address" || return
  done
  [ -z "$efs" ] || say "EFS $efs and its KMS key $key have left Terraform's state"
  terraform -chdir="$here/terraform" destroy -auto-approve "$@" || return
  [ -n "$efs" ] && [ -n "$delete_volumes" ] || return 0
  aws efs delete-file-system --file-system-id "$efs" &&
    aws kms schedule-key-deletion --key-id "$key" --pending-window-in-days 7
}

[ -z "$reachable" ] || list_objects || die 4 "the volumes and load balancers of the cluster $name could not be listed"
show_objects
if [ -n "$reachable" ] && [ -n "$makes_network" ]; then
  print_blockers "$efs" "$fsx" ${gone[@]+"${gone[@]}"} >"$work/blockers" || die 4 "AWS does not respond"
  sed 's/^/destroy.sh: keeps the network of the cluster: /' "$work/blockers" >&2
fi
if [ -z "$yes" ]; then
  for one in ${kept[@]+"${kept[@]}"}; do say "would be kept: $one"; done
  print_leftovers | sed 's/^/destroy.sh: exists now: /' >&2
  say "the cluster $name in $region: nothing was deleted; --yes deletes"
  exit
fi
[ ! -s "$work/blockers" ] || exit 3
for one in ${saves[@]+"${saves[@]}"}; do "$here/../data/save-results.sh" "${one%=*}" "${one##*=}"; done
[ -z "$reachable" ] || delete_objects ||
  die 4 "Kubernetes did not delete its load balancers, volumes or nodes: run it again"
destroy_cluster "$@" || die 5 "$maker did not delete the cluster $name: run it again"
delete_remains
print_leftovers >"$work/left" || die 4 "AWS does not respond: run it again to see what is left"
for one in ${kept[@]+"${kept[@]}"}; do say "kept, and costs money until you delete it: $one"; done
[ -z "$efs" ] || [ -n "$delete_volumes" ] ||
  say "to use EFS again: terraform import aws_efs_file_system.this $efs; terraform import aws_kms_key.this $key"
if [ -s "$work/left" ]; then
  sed 's/^/destroy.sh: left: /' "$work/left" >&2
  exit 7
fi
say "the cluster $name is removed"
