#!/usr/bin/env bash
# What is compiled for one instruction set is reached by nobody else: kernels of a set define nothing that the linker
# could take for another's (weak symbols outside the set's namespace), run nothing before main, and no other code has
# instructions of AVX-512 or tile registers.
# Usage: instruction_sets.sh LIBRARY OBJECT...    objects of kernels have the name of their set, dtrain_kernels_SET, in their path
# Exit codes: 0 so it is, 1 it is not.
set -euo pipefail

library=$1
shift
failed=0
fail() { echo "$1"; failed=1; }

for object; do
  set_of=${object##*dtrain_kernels_}
  set_of=${set_of%%[./]*}
  weak=$(nm -C --defined-only "$object" | awk '$2 ~ /[WVu]/' | grep -v " dtrain::cpu::$set_of::" || true)
  [ -z "$weak" ] || fail "$object: other code may be given these:"$'\n'"$weak"
  strong=$(nm -C --defined-only "$object" | awk '$2 ~ /[TDBR]/' | grep -v " dtrain::cpu::$set_of::" || true)
  [ -z "$strong" ] || fail "$object: outside the namespace of $set_of:"$'\n'"$strong"
  ! objdump -h "$object" | grep -q -E '\.(init_array|ctors)' || fail "$object: runs before main"
done

# Names of functions are lines of their own; zmm registers, the upper 16 of the others and masks are AVX-512's.
wide=$(objdump -d -C --no-show-raw-insn "$library" | awk '
  /^[0-9a-f]+ </ {name = $0; counted = 0}
  /%zmm|%[xy]mm(1[6-9]|2[0-9]|3[01])|%k[0-7]/ && !counted {counted = 1; ++all; if (name !~ /dtrain::cpu::(avx512(_vnni|_bf16)?|amx)::/) print name}
  /%tmm/ && name !~ /dtrain::cpu::amx::/ {print name}
  END {if (!all) print "no kernel at all has them"}')
[ -z "$wide" ] || fail "$library: instructions of AVX-512 or AMX in"$'\n'"$wide"
exit $failed
