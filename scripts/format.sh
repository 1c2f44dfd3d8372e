#!/usr/bin/env bash
# Formats every C++ file of the repository in place; with --check, names those that differ and fails.
# Uses clang-format 14 on every system: Debian 12's, else PyPI's, which is installed in ~/.cache/dtrain.
set -euo pipefail
cd "$(dirname "$0")/.."
format=$(command -v clang-format-14) || {
  folder=${XDG_CACHE_HOME:-$HOME/.cache}/dtrain/clang-format-14
  format=$folder/bin/clang-format
  if ! [ -x "$format" ]; then
    rm -rf "$folder"
    python3 -m venv "$folder"
    "$folder/bin/pip" --quiet --disable-pip-version-check install --only-binary :all: 'clang-format==14.*'
  fi
}
[ "${1:-}" = --check ] && mode=(--dry-run --Werror) || mode=(-i)
git ls-files -z '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -0 "$format" "${mode[@]}"
