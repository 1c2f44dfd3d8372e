#!/usr/bin/env bash
# Gets TensorBoard, which Debian does not have, from PyPI into a cache, for Debian's Python. Nothing is installed, and
# what is there already is not fetched again.
#     tests/parity/tensorboard.sh
# It is in ~/.cache/dtrain/tensorboard, where tests/parity/event_files.py looks; that test is skipped without it.
# Exit codes: 0 it is there, 1 it could not be had.
set -euo pipefail
folder=${XDG_CACHE_HOME:-$HOME/.cache}/dtrain/tensorboard
if [ -d "$folder" ]; then
  echo "$folder"
  exit
fi
if ! /usr/bin/python3 -m pip --version >/dev/null 2>&1; then
  echo "SKIPPED: there is no pip, with which TensorBoard is fetched"
  exit 1
fi
mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
# NumPy is Debian's; the last setuptools with pkg_resources, which TensorBoard imports.
/usr/bin/python3 -m pip --quiet --disable-pip-version-check --no-input --timeout 20 --retries 1 install \
  --root-user-action=ignore --target "$work/packages" "tensorboard==2.20.0" "setuptools==80.9.0" "numpy<2"
rm -rf "$work"/packages/numpy "$work"/packages/numpy-*
mv -T "$work/packages" "$folder"
echo "$folder"
