#!/usr/bin/env bash
# Installs the Python packages of tests/requirements.txt from PyPI into a virtual environment of Debian's interpreter,
# which sees Debian's packages as well. Rebuilds the environment when requirements.txt or the interpreter has changed.
#     tests/python_packages.sh
# Prints the environment's folder, ~/.cache/dtrain/python, where tests/python_packages.py finds the packages.
# Exit codes: 0 the packages are installed, 1 they could not be installed, which one line on standard error explains.
set -euo pipefail
requirements=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/requirements.txt
folder=${XDG_CACHE_HOME:-$HOME/.cache}/dtrain/python
python=/usr/bin/python3
fail() {
  echo "python_packages.sh: $*" >&2
  exit 1
}

$python -c 'import ensurepip, pip' 2>/dev/null || fail "there is no $python with pip and venv: scripts/setup.sh test"
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9
version=$($python -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
# An environment cannot be moved after it is made: the copy of requirements.txt marks a complete one.
if ! [ -d "$folder/lib/$version" ] || ! cmp -s "$requirements" "$folder/requirements.txt"; then
  rm -rf "$folder"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  $python -m venv --system-site-packages "$folder" >"$log" 2>&1 || fail "venv: $(tail -n 1 "$log")"
  "$folder/bin/pip" --quiet --disable-pip-version-check --no-input --timeout 20 --retries 1 install \
    --no-deps --only-binary :all: --requirement "$requirements" >"$log" 2>&1 ||
    fail "PyPI cannot be reached, or lacks a package: $(grep ERROR "$log" | tail -n 1)"
  modules='globox, mlflow, onnx, onnxruntime, pycocotools.cocoeval, scipy.io, tensorboard.program, timm, webdataset'
  "$folder/bin/python" -c "import $modules" >"$log" 2>&1 ||
    fail "a package cannot be imported: $(tail -n 1 "$log")"
  cp "$requirements" "$folder/requirements.txt"
fi
echo "$folder"
