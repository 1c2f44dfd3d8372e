#!/usr/bin/env bash
# man_pages.sh PROGRAM DIR: writes the manual pages of PROGRAM and its commands to DIR (output of --help=man).
# A program built for another CPU cannot run and has no manual page.
set -euo pipefail
program=$1 pages=$2
name=$(basename "$program")
if ! "$program" --help=man >/dev/null 2>&1; then
  echo "$name cannot run here, so it gets no manual pages"
  exit
fi
page() { "$program" "${@:2}" --help=man | gzip -9n >"$pages/$1.1.gz"; }
page "$name"
[ "$name" != dtrain-mpirun ] || exit 0  # forwards all other arguments to mpirun
"$program" --help=list | while IFS=$'\t' read -r command kind _; do
  [ "$kind" != command ] || page "$name-$command" "$command"
done
