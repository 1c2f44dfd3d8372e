#!/usr/bin/env bash
# Regenerates the table of docs/detection_keys.md from the configuration keys of a built program.
set -euo pipefail
cd "$(dirname "$0")/.."
page=docs/detection_keys.md
text=$(sed '/^<!-- Generated/q' "$page")
table=$("${1:-build/bin/dtrain-mask-rcnn}" --help=KEYS_MARKDOWN)
printf '%s\n\n%s\n' "$text" "$table" > "$page"
