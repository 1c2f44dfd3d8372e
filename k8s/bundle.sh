#!/usr/bin/env bash
# Writes dtrain-k8s-VERSION.tar.gz, a bundle that submits jobs from machines without the sources. Images must have been
# pushed before.
#     k8s/bundle.sh [FOLDER]
# FOLDER is the destination (default: current directory). The archive is reproducible.
# Exit codes: 0 done, 1 usage, 6 a file cannot be read or written.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ $# -gt 1 ] || [[ ${1:-} == -* ]]; then
  sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit 1
fi
folder=${1:-.}
version=$(sed -n 's/^project(dtrain VERSION \([0-9.]*\).*/\1/p' "$here/../CMakeLists.txt")
[ -n "$version" ] || { echo "bundle.sh: CMakeLists.txt states no version" >&2; exit 6; }
name=dtrain-k8s-$version
stage=$(mktemp -d) || exit 6
trap 'rm -rf "$stage"' EXIT

mkdir -p "$stage/$name/k8s" "$folder"
parts=(README.md source-documents.md troubleshooting.md versions.txt versions.md support.txt base base-job cluster components lib instance-types.csv instance-types.md instance-prices.csv overlays rendered charts tools data benchmark storage peers fargate ec2 gitops)
for part in "${parts[@]}" "$here"/*.sh; do
  part=${part##*/}
  [ "$part" != bundle.sh ] || continue
  cp -R "$here/$part" "$stage/$name/k8s/" || exit 6
done
cp "$here/../LICENSE" "$stage/$name/" || exit 6
# The chart monitoring links to these files.
{ mkdir -p "$stage/$name/examples" && cp -R "$here/../examples/monitoring" "$stage/$name/examples/"; } || exit 6
echo "$version" >"$stage/$name/VERSION"
# Excludes local Terraform state and variables, which may be confidential.
find "$stage" \( -name '*.new' -o -name .terraform -o -name '*.tfstate*' -o -name '*.tfvars' -o -name backend.tf \) \
  -prune -exec rm -rf {} +
tar --directory "$stage" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w \
  --create "$name" | gzip -n9 >"$stage/$name.tar.gz"
mv "$stage/$name.tar.gz" "$folder/"
echo "$folder/$name.tar.gz"
