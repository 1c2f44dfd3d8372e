#!/usr/bin/env bash
# Copies a folder of logs and checkpoints to S3, and compares every file there with its checksum.
#     k8s/data/save-results.sh FOLDER BUCKET[/PREFIX]
# Call it before storage is destroyed, and destroy nothing unless it exits with 0. FOLDER is only read, and may be
# mounted read-only; the list of checksums lies beside its copy on S3, as SHA256SUMS. The same command goes on after a
# failure. What is read back lies in $TMPDIR for a while. Links are not copied: those that lead within FOLDER are named.
# Exit codes: 0 saved and compared, 1 usage, 2 S3 holds something else, or FOLDER something that cannot be saved,
# 6 disk or S3.
set -euo pipefail
# shellcheck disable=SC2034 # transfer.sh names it in its messages
self=save-results.sh
# shellcheck source=/dev/null
. "$(dirname "${BASH_SOURCE[0]}")/transfer.sh"
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
