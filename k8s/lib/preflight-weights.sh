# shellcheck shell=bash disable=SC2154  # variables of k8s/preflight.sh
# Initial weights of a job, for k8s/preflight.sh. Only a pod can look into a claim: a pod that runs for a second mounts the
# claim read-only and is deleted. With probe=no nothing is created.

# Runs in the pod. Arguments are files or folders. Prints `missing`, `empty` or `altered` and the path, then `checked`.
# Compares files with the record that k8s/data/stage.sh and the chart coco-data write beside them. Without command
# substitutions, whose syntax is that of variables in a pod's command.
# shellcheck disable=SC2016  # the dollars are the pod's
weights_script='for file; do
  record=${file%/*}/weights.lock
  if [ ! -e "$file" ]; then
    echo "missing $file"
  elif [ -f "$file" ] && [ ! -s "$file" ]; then
    echo "empty $file"
  elif [ -f "$file" ] && [ -f "$record" ]; then
    { wc -c <"$file" && sha256sum <"$file"; } | {
      read -r size && read -r sum rest
      while read -r name known; do
        [ "$name" != "${file##*/}" ] || [ "$known" = "$size $sum" ] || echo "altered $file"
      done <"$record"
    }
  fi
done
echo checked'

# Lines of manifest-facts.awk of a manifest in any style of YAML.
weights_facts() {  # FILE
  local folder result=0
  folder=$(mktemp -d) || return
  cp "$1" "$folder/job.yaml" && echo 'resources: [job.yaml]' >"$folder/kustomization.yaml" &&
    kubectl kustomize "$folder" >"$folder/rendered" && awk -f "$here/lib/manifest-facts.awk" "$folder/rendered" || result=$?
  rm -rf "$folder"
  return $result
}
facts_of() { awk -F '\t' -v key="$1" '$1 == key { print $2 }' <<<"$facts"; }
# Replaces $(NAME) by the value of the variable; an unknown variable stays, as in a pod.
expanded() {  # PATH
  local path=$1 name value
  while [[ $path =~ \$\(([A-Za-z0-9_]+)\) ]]; do
    name=${BASH_REMATCH[1]}
    value=$(awk -F '\t' -v name="$name" '$1 == "variable" && $2 == name { print "=" $3; exit }' <<<"$facts")
    [[ $value == =* && $value != *'$('* ]] || break
    path=${path//"\$($name)"/${value#=}}
  done
  echo "$path"
}
# Prints the mount that contains a path, PATH<tab>CLAIM<tab>SUBPATH, if it is of a claim.
mount_of() {  # PATH
  awk -F '\t' -v path="$1" '
    $1 == "claim" { claims[$2] = $3 }
    $1 == "mount" && index(path "/", $2 "/") == 1 && length($2) > length(best) { best = $2; volume = $3; sub_path = $4 }
    END { if (volume in claims) print best "\t" claims[volume] "\t" sub_path }' <<<"$facts"
}

# Prints the manifest of the pod. Reads mounts from stdin; arguments are the paths.
weights_pod() {
  local number=0 path claim line key value volumes='' mounts='' secrets='' user=''
  while IFS=$'\t' read -r path claim; do
    number=$((number + 1))
    mounts+="{name: data-$number, mountPath: $path, readOnly: true}, "
    volumes+="{name: data-$number, persistentVolumeClaim: {claimName: $claim, readOnly: true}}, "
  done
  for line in $(facts_of secret | sort -u); do secrets+="{name: $line}, "; done
  # A supplemental group reads what the job's fsGroup may read, but changes no owner.
  while IFS=$'\t' read -r key value; do
    case $key in fsGroup) user+="supplementalGroups: [$value], " ;; *) user+="$key: $value, " ;; esac
  done < <(awk -F '\t' '$1 == "id" && $3 ~ /^[0-9]+$/ && !seen[$2]++ { print $2 "\t" $3 }' <<<"$facts")
  cat <<EOF
apiVersion: v1
kind: Pod
metadata:
  generateName: preflight-
  namespace: $namespace
  labels: {app.kubernetes.io/name: dtrain, app.kubernetes.io/component: preflight}
  annotations: {sidecar.istio.io/inject: "false"}
spec:
  restartPolicy: Never
  activeDeadlineSeconds: 600
  terminationGracePeriodSeconds: 0
  automountServiceAccountToken: false
  enableServiceLinks: false
  imagePullSecrets: [${secrets%, }]
  securityContext: {${user}runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: preflight
      image: ${DTRAIN_PROBE_IMAGE:-$(facts_of image | head -n 1)}
      command:
        - sh
        - -c
        - |
          ${weights_script//$'\n'/$'\n'          }
        - sh
$(printf '        - "%s"\n' "$@")
      resources:
        requests: {cpu: 100m, memory: 128Mi}
        limits: {cpu: 100m, memory: 128Mi}
      securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
      volumeMounts: [${mounts%, }]
  volumes: [${volumes%, }]
EOF
}

# Runs the pod and prints its output, or `unknown` and the reason.
run_weights_pod() (  # MANIFEST
  pod='' state='' waited=0
  pod=$(ask create -f "$1" -o name 2>&1) || { echo "unknown ${pod##*$'\n'}" && exit; }
  trap 'ask delete "$pod" --namespace "$namespace" --ignore-not-found --wait=false >/dev/null 2>&1' EXIT
  trap 'exit 130' INT TERM
  while [ $waited -lt "${DTRAIN_PROBE_SECONDS:-180}" ]; do
    state=$(ask get "$pod" --namespace "$namespace" -o jsonpath='{.status.phase} {.status.reason}{.status.conditions[?(@.status=="False")].reason} {.status.containerStatuses[0].state.waiting.reason}')
    case $state in
      Succeeded*)
        ask logs "$pod" --namespace "$namespace"
        exit
        ;;
      Failed* | *ImagePullBackOff* | *ErrImageNeverPull* | *InvalidImageName* | *CreateContainerConfigError*) break ;;
    esac
    sleep 2 &
    wait $!
    waited=$((waited + 2))
  done
  echo "unknown $pod: ${state:-no answer}"
)

report_weights() {  # WORD PATH
  local mount claim path=$2
  IFS=$'\t' read -r mount claim _ < <(mount_of "$path")
  case $1 in
    missing | empty) lacks 20 "the job's weights are $1: ${path#"$mount/"} of the claim $claim. Download them by k8s/data/stage.sh coco or the chart coco-data" ;;
    altered) lacks 20 "the job's weights ${path#"$mount/"} of the claim $claim differ from weights.lock beside them" ;;
    unknown) note "whether the job's weights exist was not checked: $path" ;;
  esac
}

check_weights() {  # FILE
  local facts path mount sub_path claim phase paths=() mounts='' word='' pod
  facts=$(weights_facts "$1") || { note "whether the job needs weights was not checked" && return; }
  while IFS= read -r path; do
    path=$(expanded "$path")
    IFS=$'\t' read -r mount claim sub_path < <(mount_of "$path")
    if [ -z "${claim:-}" ] || [ -n "$sub_path" ] || [[ ! $path$mount =~ ^[-A-Za-z0-9._/=+@]+$ ]]; then
      note "the job's weights $(printf %q "$path") are not on a claim: not checked"
      continue
    fi
    phase=$(ask get persistentvolumeclaim "$claim" --namespace "$namespace" --ignore-not-found -o jsonpath='{.status.phase}')
    if [[ $phase != Bound* ]]; then
      note "the claim $claim is not Bound: the job's weights $path were not checked"
      continue
    fi
    paths+=("$path")
    mounts+=$mount$'\t'$claim$'\n'
  done < <(facts_of weights | sort -u)
  [ ${#paths[@]} != 0 ] || return 0
  if [ "$probe" = no ]; then
    note "the job's weights were not checked, since --read-only starts no pod: ${paths[*]}"
    return
  fi
  pod=$(mktemp) || return
  sort -u <<<"${mounts%$'\n'}" | weights_pod "${paths[@]}" >"$pod"
  while read -r word path; do
    report_weights "$word" "$path"
    [[ $word != checked && $word != unknown ]] || break
  done < <(run_weights_pod "$pod")
  [[ $word == checked || $word == unknown ]] || report_weights unknown "its pod gave no answer"
  rm -f "$pod"
}
