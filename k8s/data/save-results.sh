#!/usr/bin/env bash
# Copies a folder of logs and checkpoints to S3 and verifies the checksum of every file.
#     k8s/data/save-results.sh FOLDER BUCKET[/PREFIX]
# Run it before storage is deleted, and delete storage only if it exits with 0. FOLDER is only read and may be mounted
# read-only. The checksums are stored with the copy as SHA256SUMS. Run the same command to resume after a failure. Files
# are read back to $TMPDIR. Symbolic links are not copied; links within FOLDER are listed.
# Checks each checkpoint against its manifest: a damaged checkpoint, which lacks a file or has one of another size, is
# copied and listed, and the exit code is 2.
# Exit codes: 0 saved and verified, 1 usage, 2 other content on S3, files that cannot be saved or a damaged checkpoint,
# 6 disk or S3.
set -euo pipefail
# shellcheck disable=SC2034 # transfer.sh names it in its messages
self=save-results.sh
# shellcheck source=/dev/null
. "$(dirname "${BASH_SOURCE[0]}")/transfer.sh"

# damaged CHECKPOINT: prints the missing or truncated files of its manifest, one per line.
damaged() {
  local name bytes
  [ -s "$1/MANIFEST.json" ] || { echo MANIFEST.json && return; }
  while read -r name bytes; do
    [ "$(stat -c %s "$1/$name" 2>/dev/null)" = "$bytes" ] || echo "$name"
  done < <(sed -nE '/^    "[a-z._]+": \{$/{N; s/^    "(.*)": \{\n *"bytes": ([0-9]+),$/\1 \2/p}' "$1/MANIFEST.json" |
    grep . || echo MANIFEST.json -)
}

[ $# -eq 2 ] || die "usage: k8s/data/save-results.sh FOLDER BUCKET[/PREFIX]"
[ -d "$1" ] || die "$1 is not a folder"
folder=$(realpath "$1")
[ -n "$(find "$folder" -type f -print -quit)" ] || die "$1 holds no file to save"
command -v aws >/dev/null || die "aws is not installed"
url=$(s3_url "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
while IFS= read -r -d '' link; do
  target=$(realpath -m "$link")
  [[ $target == "$folder"/* ]] || die "$link leads to $target, which would not be saved: replace the link by a copy, or remove it" 2
  echo "$link leads to $target, and is not copied itself"
done < <(find "$folder" -type l -print0)
write_list "$folder"
upload "$folder" "$url"
compare "$folder" "$url"
bad=0 count=0
while IFS= read -r -d '' checkpoint; do
  count=$((count + 1))
  while IFS= read -r name; do
    echo "$self: $checkpoint is damaged: $name is missing, or its size differs from the manifest" >&2
    bad=1
  done < <(damaged "$checkpoint")
done < <(find "$folder" -type d -regex '.*/step-[0-9]+' -print0)
[ "$bad" = 0 ] || die "everything was copied, but a checkpoint is damaged" 2
[ "$count" = 0 ] || echo "$count checkpoints have the files of their manifests"
