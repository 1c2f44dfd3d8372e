#!/usr/bin/env bash
# Regenerates the tables of docs/tf_cnn_benchmarks.md from the flag declarations of a built program.
set -euo pipefail
cd "$(dirname "$0")/.."
page=docs/tf_cnn_benchmarks.md
text=$(sed '/^<!-- Generated/q' "$page")
tables=$("${1:-build/bin/dtrain-cnn-benchmarks}" --helpmarkdown)
printf '%s\n\n%s\n' "$text" "$tables" > "$page"
