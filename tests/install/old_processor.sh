#!/usr/bin/env bash
# old_processor.sh PROGRAM...: runs each program on an emulated CPU of 2008, where it must exit with 1 and one line that
# names the missing instruction sets, and on a CPU with them.
set -euo pipefail
command -v qemu-x86_64 >/dev/null || { echo "SKIPPED: no qemu-x86_64; on Debian: apt install qemu-user"; exit 0; }
for program in "$@"; do
  code=0
  message=$(qemu-x86_64 -cpu Nehalem "$program" --help 2>&1) || code=$?
  echo "$(basename "$program"): exit code $code, $message"
  [ $code = 1 ] && [[ $message == "error: this processor has no AVX2"* ]] || exit 1
  qemu-x86_64 -cpu max "$program" --help >/dev/null
done
