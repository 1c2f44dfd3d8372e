#!/usr/bin/env bash
# Formats every C++ file of the repository in place; with --check, names those that differ and fails.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "${1:-}" = --check ] && mode=(--dry-run --Werror) || mode=(-i)
git ls-files -z '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -0 clang-format-14 "${mode[@]}"
