# shellcheck shell=bash disable=SC2154  # variables of k8s/preflight.sh
# Images of a job, for k8s/preflight.sh: on the nodes, or in their registries.

on_nodes() {  # IMAGE
  local name=$1
  # Kubelets list images with their registry.
  [[ $name == */* ]] || name=library/$name
  [[ ${name%%/*} == *[.:]* || ${name%%/*} == localhost ]] || name=docker.io/$name
  grep -qFx "image"$'\t'"$name" "$work/nodes" || grep -qFx "image"$'\t'"$1" "$work/nodes"
}

# Prints what a registry says of an image, and fails if it does not confirm the image.
ask_registry() {  # IMAGE
  local name=$1 host=${1%%/*} reference
  reference=imageTag=latest
  if [[ $name == *@* ]]; then
    reference=imageDigest=${name#*@}
    name=${name%%@*}
    [[ ${name##*/} != *:* ]] || name=${name%:*}
  elif [[ ${name##*/} == *:* ]]; then
    reference=imageTag=${name##*:}
    name=${name%:*}
  fi
  if [[ $host =~ ^[0-9]+\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?$ ]] && command -v aws >/dev/null; then
    { aws ecr describe-images --region "${BASH_REMATCH[1]}" --registry-id "${host%%.*}" --repository-name "${name#*/}" \
      --image-ids "$reference" --output json >/dev/null; } 2>&1
  elif command -v skopeo >/dev/null; then
    case $reference in imageTag=*) name+=:${reference#*=} ;; *) name+=@${reference#*=} ;; esac
    { skopeo --command-timeout 20s inspect --raw "docker://$name" >/dev/null; } 2>&1
  else
    echo "skopeo is not installed"
    return 1
  fi
}

check_image() {  # IMAGE
  local image=$1 answer
  if on_nodes "$image"; then return; fi
  if [[ $image != */* && $image == dtrain-* && -s $work/nodes ]]; then
    lacks 19 "the image $image has no registry, and is on no node: k8s/images/build.sh --push REGISTRY, or set IMAGE"
    return
  fi
  answer=$(ask_registry "$image") && return
  answer=$(grep -v '^$' <<<"$answer" | tail -n 1)
  case ${answer,,} in
    *"manifest unknown"* | *"name unknown"* | *"not found"* | *notfound* | *"does not exist"*)
      lacks 19 "the image $image cannot be pulled: $answer" ;;
    *) note "whether nodes can pull the image $image was not checked: ${answer:-its registry did not respond}" ;;
  esac
}
check_images() {
  local image
  while IFS= read -r image; do check_image "$image"; done < <(awk -F '\t' '$2 == "image" { print $3 }' "$work/pods" | sort -u)
}
