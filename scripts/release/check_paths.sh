#!/usr/bin/env bash
# check_paths.sh FOLDER PATH...: fails, naming file and path, if a file in FOLDER contains one of the absolute paths, e.g.
# of the build tree. Device code is exempt: nvcc stores the names of its source files in it.
set -euo pipefail
folder=$1
shift
copy=$(mktemp)
trap 'rm -f "$copy"' EXIT
faults=0
while read -r file; do
  content=$file
  if [ "$(head -c 4 "$file" | tr -d '\0\177')" = ELF ]; then
    objcopy -R .nv_fatbin "$file" "$copy"
    content=$copy
  fi
  for path in "$@"; do
    grep -qF -e "$path/" "$content" || continue
    echo "$file: contains the build path $(strings -a "$content" | grep -F -m 1 -e "$path/")" >&2
    faults=$((faults + 1))
  done
done < <(find "$folder" -type f)
[ $faults = 0 ]
