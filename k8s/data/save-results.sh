#!/usr/bin/env bash
# Copies a folder of logs and checkpoints to S3, and compares every file there with its checksum.
#     k8s/data/save-results.sh FOLDER BUCKET[/PREFIX]
# Call it before storage is destroyed, and destroy nothing unless it exits with 0. It writes FOLDER/SHA256SUMS and
# copies it too. The same command goes on after a failure. What is read back lies in $TMPDIR for a while.
# Exit codes: 0 saved and compared, 1 usage, 2 S3 holds something else, 6 disk or S3.
set -euo pipefail
# shellcheck disable=SC2034 # transfer.sh names it in its messages
self=save-results.sh
# shellcheck source=/dev/null
. "$(dirname "${BASH_SOURCE[0]}")/transfer.sh"
[ $# -eq 2 ] || die "usage: k8s/data/save-results.sh FOLDER BUCKET[/PREFIX]"
[ -d "$1" ] || die "$1 is not a folder"
[ -n "$(find "$1" -type f -print -quit)" ] || die "$1 holds no file to save"
command -v aws >/dev/null || die "aws is not installed"
url=$(s3_url "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
write_list "$1" || die "$1: could not be read, or its list not be written" 6
upload "$1" "$url"
compare "$1" "$url"
