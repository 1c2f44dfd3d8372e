#!/usr/bin/env bash
# Writes each overlay and storage, or those that are named, as it is sent to a cluster, to k8s/rendered/OVERLAY.yaml:
#     k8s/render.sh [--check] [OVERLAY|storage/NAME...]
# What has to be set in a storage, and is not, has the value of its example.
# --check writes nothing, and says which files are not what their overlays come to.
# Exit codes: 0 done, or all are alike; 1 usage, an overlay that cannot be rendered, or files that differ; 6 no kubectl
# and no kustomize, or a file that cannot be written. kubectl knows components from 1.21 on, kustomize from 3.7 on.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
say() { echo "render.sh: $*" >&2; }
check=no
if [ "${1:-}" = --check ]; then
  check=yes
  shift
fi
if kubectl kustomize --help >/dev/null 2>&1; then
  render=(kubectl kustomize)
elif kustomize version >/dev/null 2>&1; then
  render=(kustomize build)
else
  say "neither kubectl nor kustomize is installed"
  exit 6
fi
overlays=("$@")
if [ $# = 0 ]; then
  for folder in "$here"/overlays/*/; do overlays+=("$(basename "$folder")"); done
  for folder in "$here"/storage/*/; do overlays+=("storage/$(basename "$folder")"); done
fi

work=$(mktemp -d) || exit 6
trap 'rm -rf "$work"' EXIT
text=$work/text
cp -R "$here/storage" "$here/components" "$work" || exit 6
sed -i 's/^  # \([A-Z0-9_]*: \)/  \1/' "$work"/storage/*/parameters.yaml || exit 6
result=0
for overlay in "${overlays[@]}"; do
  rendered=$here/rendered/$overlay.yaml
  folder=$here/overlays/$overlay
  case $overlay in storage/*) folder=$work/$overlay ;; esac
  if [ ! -f "$folder/kustomization.yaml" ]; then
    say "there is no overlay $overlay"
    exit 1
  fi
  if ! "${render[@]}" "$folder" >"$text"; then
    say "$overlay cannot be rendered; kubectl before 1.21 knows no components"
    exit 1
  fi
  if [ $check = yes ]; then
    cmp -s "$text" "$rendered" && continue
    say "$rendered is not what the overlay comes to: k8s/render.sh $overlay"
    result=1
  else
    { mkdir -p "$(dirname "$rendered")" && cp "$text" "$rendered" && chmod 644 "$rendered"; } || exit 6
  fi
done
if [ $# = 0 ]; then
  for rendered in "$here"/rendered/*.yaml "$here"/rendered/storage/*.yaml; do
    name=${rendered#"$here/rendered/"}
    [ ! -e "$rendered" ] || [ -d "$here/overlays/${name%.yaml}" ] || [ -d "$here/${name%.yaml}" ] && continue
    say "$rendered has no overlay"
    result=1
  done
fi
exit $result
