#!/usr/bin/env bash
# Renders all or the named overlays and storages to k8s/rendered/OVERLAY.yaml:
#     k8s/render.sh [--check] [OVERLAY|storage/NAME...]
# Missing required parameters of a storage get their example values.
# --check writes nothing and lists outdated files.
# Exit codes: 0 done, or up to date; 1 usage, an overlay that cannot be rendered, or outdated files; 6 neither kubectl
# nor kustomize is installed, or a file cannot be written. Needs kubectl 1.21 or kustomize 3.7 (components).
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
    say "$overlay cannot be rendered; kubectl before 1.21 does not support components"
    exit 1
  fi
  if [ $check = yes ]; then
    cmp -s "$text" "$rendered" && continue
    say "$rendered is outdated: run k8s/render.sh $overlay"
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
