# shellcheck shell=bash disable=SC2154  # variables of k8s/preflight.sh
# The operators of jobs, for k8s/preflight.sh.

# Writes $work/deployments: lines NAME READY IMAGE and the first container's arguments and variables, separated by tabs.
# shellcheck disable=SC2016  # the dollars are the template's
read_deployments() {
  ask get deployments --all-namespaces -o go-template='{{range .items}}{{.metadata.name}}{{"\t"}}{{or .status.readyReplicas 0}}
{{- with index .spec.template.spec.containers 0}}{{"\t"}}{{.image}}{{range .command}}{{"\t"}}{{.}}{{end}}
{{- range .args}}{{"\t"}}{{.}}{{end}}{{range .env}}{{"\t"}}{{.name}}={{or .value ""}}{{end}}{{end}}
{{end}}' >"$work/deployments"
}
deployment_like() { awk -F '\t' -v name="$1" 'index($1, name) { print; exit }' "$work/deployments"; }  # PART-OF-NAME

check_operator() {  # KIND CRD VERSION NAME-OF-DEPLOYMENT FIELD...
  local kind=$1 crd=$2 version=$3 deployment=$4 answer served fields field found ready image
  shift 4
  # The names of the served versions, and in the next line the fields of the one that the manifest uses.
  answer=$(ask get crd "$crd" --ignore-not-found -o jsonpath="{range .spec.versions[?(@.served==true)]}{.name} {end}
{.spec.versions[?(@.name=='$version')].schema.openAPIV3Schema.properties.spec}")
  served=${answer%%$'\n'*}
  fields=${answer#*$'\n'}
  if [ -z "$served" ]; then
    lacks 10 "this cluster has no CRD of $kind: install $deployment"
    return
  fi
  if [[ " $served" != *" $version "* ]]; then
    lacks 10 "$kind is served as ${served% }, not as $version: another operator owns it, or $deployment is too old"
    return
  fi
  found=$(deployment_like "$deployment")
  if [ -z "$found" ]; then
    lacks 11 "the CRD of $kind exists, but no Deployment $deployment is running"
    return
  fi
  IFS=$'\t' read -r _ ready image _ <<<"$found"
  note "$deployment: $image"
  [ "$ready" != 0 ] || lacks 11 "$deployment has no ready pod"
  for field in "$@"; do
    if has_spec_field "$field" && [[ $fields != *"\"$field\""* ]]; then
      lacks 10 "$kind in this cluster has no field spec.$field: install a newer $deployment"
    fi
  done
}
check_operators() {
  if has_kind MPIJob; then
    check_operator MPIJob mpijobs.kubeflow.org v2beta1 mpi-operator \
      launcherCreationPolicy mpiImplementation runLauncherAsWorker runPolicy slotsPerWorker sshAuthMountPath
  fi
  if has_kind PyTorchJob; then check_operator PyTorchJob pytorchjobs.kubeflow.org v1 training-operator; fi
  if has_kind TFJob; then check_operator TFJob tfjobs.kubeflow.org v1 training-operator; fi
  if has_kind TrainJob; then
    check_operator TrainJob trainjobs.trainer.kubeflow.org v1alpha1 trainer-controller runtimeRef trainer
  fi
}
