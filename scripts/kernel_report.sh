#!/usr/bin/env bash
# Compiles the kernels for one architecture and prints what each takes: registers, shared memory, stack and spills.
#   scripts/kernel_report.sh [-a sm_90] [-h] [file.cu ...]   default: all kernels of the engine; -h: files with hot ones
# Fails where a hot kernel (the list below) spills or uses local memory or, of all files, is in none, and, where
# cuobjdump and nvdisasm are found, where one that memory bounds has no 128-bit loads or stores. The shared memory is
# that known at compile time; ours is dynamic.
set -euo pipefail
cd "$(dirname "$0")/.."

# Kernel (a pattern of its demangled name), and the 128-bit accesses that its machine code must have.
hot_kernels=(
  'statistics_kernel<(float, 4|__nv_bfloat16, 8|__half, 8)> load'
  'apply_kernel<(float, 4|__nv_bfloat16, 8|__half, 8), load store'
  'resident_forward_kernel<(float, 4|__nv_bfloat16, 8|__half, 8), load store'
  'sums_kernel<(float, 4|__nv_bfloat16, 8|__half, 8)> load'
  'dx_kernel<(float, 4|__nv_bfloat16, 8|__half, 8), load store'
  'resident_backward_kernel<(float, 4|__nv_bfloat16, 8|__half, 8)> load store'
  'bn_relu_max_pool_kernel<(float, 4|__nv_bfloat16, 8|__half, 8), 3> load store'
  'map_kernel<(4|8), load store'
  'normalize_kernel<'
  'max_pool_kernel<(float, 4|__nv_bfloat16, 8|__half, 8), load store'
  'average_pool_kernel<(float, 4|__nv_bfloat16, 8|__half, 8), load store'
  'pool_grad_kernel<(float, 4|__nv_bfloat16, 8|__half, 8), load store'
  'pool_grad_block_kernel< load store'
  'roi_align_kernel<(float, 4|__nv_bfloat16, 8|__half, 8)> load store'
  'roi_align_grad_kernel<(float, 4|__nv_bfloat16, 8|__half, 8)> load store'
  'upsample_kernel<(float, 4|__nv_bfloat16, 8|__half, 8)> load store'
  'upsample_grad_kernel<(float, 4|__nv_bfloat16, 8|__half, 8)> load store'
  'update_kernel< load store'
  'measure_kernel load'
  'resample_kernel<'
)

architecture=sm_90
hot_files=
while getopts a:h option; do
  case $option in
    a) architecture=$OPTARG ;;
    h) hot_files=yes ;;
    *) sed -n '2,3s/^# *//p' "$0" >&2; exit 1 ;;
  esac
done
shift $((OPTIND - 1))
complete=
if [ $# -eq 0 ]; then
  complete=yes
  set -- libdtrain/ops/*_cuda.cu
  [ ! -e libdtrain/cuda ] || set -- "$@" $(find libdtrain/cuda -name '*.cu')
fi
if [ -n "$hot_files" ]; then  # those that define a hot kernel, or include what does
  names=$(printf '%s\n' "${hot_kernels[@]}" | sed -E 's/[^a-z_].*//' | sort -u | paste -sd '|')
  headers=$(grep -lEw "$names" libdtrain/*/*.cuh | paste -sd '|')
  set -- $(grep -lE "\\b($names)\\b|\"($headers)\"" "$@")
fi

find_tool() {
  command -v "$1" || PATH=${CUDA_HOME:-}/bin:${CUDA_PATH:-}/bin:/usr/local/cuda/bin command -v "$1" || true
}
nvcc=$(find_tool nvcc)
[ -n "$nvcc" ] || { echo "kernel_report: no nvcc in PATH, \$CUDA_HOME, \$CUDA_PATH or /usr/local/cuda" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The flags of cmake/Compile.cmake that matter for the machine code. The host's part is not compiled.
compile=($(command -v ccache || true) "$nvcc" -std=c++20 -O3 "-arch=$architecture" --expt-relaxed-constexpr -lineinfo -Xptxas -v -I. -c -cubin)
for source in "$@"; do
  name=$(basename "$source" .cu)
  "${compile[@]}" "$source" -o "$work/$name.cubin" 2> "$work/$name.log" || { cat "$work/$name.log" >&2; exit 1; }
done

# One line per kernel: registers, shared bytes, stack bytes, bytes of spill stores and loads, file, name.
for source in "$@"; do
  name=$(basename "$source" .cu)
  awk -v file="$name" '
    /Compiling entry function/ { match($0, /\047[^\047]+\047/); kernel = substr($0, RSTART + 1, RLENGTH - 2) }
    /bytes stack frame/ { stack = $1; spills = $5 + $9 }
    /Used [0-9]+ registers/ {
      match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5, RLENGTH - 5)
      shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH - 11) : 0
      print registers "\t" shared "\t" stack "\t" spills "\t" file "\t" kernel
    }' "$work/$name.log"
done | c++filt | sed -E 's/dtrain::(cuda::)?//g; s/\(anonymous namespace\):://g; s/\tvoid /\t/; s/\([^()]*\)$//' > "$work/table"
{ printf 'registers\tshared\tstack\tspills\tfile\tkernel\n'; cat "$work/table"; } | column -t -s $'\t'

failed=0
fail() { echo "kernel_report: $*" >&2; failed=1; }
hot_lines() { awk -F '\t' -v pattern="^$1" '$6 ~ pattern' "$work/table"; }

for hot in "${hot_kernels[@]}"; do
  pattern=${hot%% load*}
  [ -z "$complete" ] || [ -n "$(hot_lines "$pattern")" ] || fail "no kernel is named ${pattern}"
  hot_lines "$pattern" | while IFS=$'\t' read -r _ _ stack spills _ kernel; do
    [ "$stack" = 0 ] && [ "$spills" = 0 ] || echo "$kernel: $stack bytes of stack, $spills of spills"
  done > "$work/spills"
  while read -r line; do fail "$line"; done < "$work/spills"
done

cuobjdump=$(find_tool cuobjdump)
if [ -z "$cuobjdump" ] || [ -z "$(find_tool nvdisasm)" ]; then
  echo "kernel_report: 128-bit accesses were not checked: no cuobjdump and nvdisasm found"
  exit $failed
fi
PATH=$(dirname "$cuobjdump"):$PATH  # it calls nvdisasm
for source in "$@"; do
  "$cuobjdump" -sass "$work/$(basename "$source" .cu).cubin"
done | c++filt | awk '
  function flush() { if (kernel) print loads + 0 "\t" stores + 0 "\t" kernel }
  /Function : / { flush(); sub(/.*Function : /, ""); kernel = $0; loads = stores = 0 }
  /LDG\.E\.128/ { ++loads }
  /STG\.E\.128/ { ++stores }
  END { flush() }' | sed -E 's/dtrain::(cuda::)?//g; s/\(anonymous namespace\):://g; s/\tvoid /\t/; s/\([^()]*\)$//' > "$work/accesses"
for hot in "${hot_kernels[@]}"; do
  case $hot in *load*) ;; *) continue ;; esac
  awk -F '\t' -v pattern="^${hot%% load*}" -v stores="${hot##*load}" '
    $3 ~ pattern && ($1 == 0 || (stores != "" && $2 == 0)) {
      print $3 ": " $1 " loads and " $2 " stores of 128 bits" }' "$work/accesses" > "$work/narrow"
  while read -r line; do fail "$line"; done < "$work/narrow"
done
echo "kernel_report: 128-bit accesses were checked"
exit $failed
