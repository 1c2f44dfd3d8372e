#!/usr/bin/env bash
# Copies a folder of logs and checkpoints to S3, and compares every file there with its checksum.
#     k8s/data/save-results.sh FOLDER BUCKET[/PREFIX]
# Call it before storage is destroyed, and destroy nothing unless it exits with 0. FOLDER is only read, and may be
# mounted read-only; the list of checksums lies beside its copy on S3, as SHA256SUMS. The same command goes on after a
# failure. What is read back lies in $TMPDIR for a while. Links are not copied: those that lead within FOLDER are named.
# Checkpoints are looked at by their own manifests, too: all is copied, but one that lacks a file of its manifest, or has
# one of another size, is named, and the exit code is 2.
# Exit codes: 0 saved and compared, 1 usage, 2 S3 holds something else, FOLDER something that cannot be saved or a
# checkpoint that is damaged, 6 disk or S3.
set -euo pipefail
# shellcheck disable=SC2034 # transfer.sh names it in its messages
self=save-results.sh
# shellcheck source=/dev/null
. "$(dirname "${BASH_SOURCE[0]}")/transfer.sh"

# damaged CHECKPOINT: what its manifest has and it has not, a line for each.
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
  [[ $target == "$folder"/* ]] || die "$link leads to $target, which would not be saved: put that in its place, or remove it" 2
  echo "$link leads to $target, and is not copied itself"
done < <(find "$folder" -type l -print0)
write_list "$folder"
upload "$folder" "$url"
compare "$folder" "$url"
bad=0 count=0
while IFS= read -r -d '' checkpoint; do
  count=$((count + 1))
  while IFS= read -r name; do
    echo "$self: $checkpoint is damaged: $name is missing or not as long as its manifest says" >&2
    bad=1
  done < <(damaged "$checkpoint")
done < <(find "$folder" -type d -regex '.*/step-[0-9]+' -print0)
[ "$bad" = 0 ] || die "all is copied, but a checkpoint is damaged" 2
[ "$count" = 0 ] || echo "$count checkpoints have the files of their manifests"
