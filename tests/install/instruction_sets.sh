#!/usr/bin/env bash
# Checks that code of one instruction set does not leak: kernels of a set define no weak symbols outside of the set's
# namespace, which the linker could merge with others, and no static initialisers; other code has no AVX-512 or AMX
# instructions.
# Usage: instruction_sets.sh LIBRARY OBJECT...    paths of kernel objects contain dtrain_kernels_SET
# Exit codes: 0 passed, 1 failed.
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
