#!/usr/bin/env bash
# Prints registers, static shared memory, stack and register spills of each CUDA kernel, as reported by ptxas.
#   scripts/kernel_report.sh BUILD [sm_90]   BUILD must be configured with -DCMAKE_CUDA_FLAGS=-Xptxas=-v (preset ci)
# Fails if a hot kernel (see the list) is missing, spills registers or uses local memory. If cuobjdump and nvdisasm are
# installed, also fails if a memory-bound kernel has no 128-bit loads or stores. Dynamic shared memory is not reported.
set -euo pipefail
cd "$(dirname "$0")/.."

# Hot kernels: pattern of the demangled name, and the 128-bit accesses that the SASS must contain.
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

build=${1:?expected: kernel_report.sh BUILD [ARCHITECTURE]} architecture=${2:-sm_90}
mapfile -t logs < <(find "$build" -name '*.cu.o.ptxas')
[ ${#logs[@]} -gt 0 ] || {
  echo "kernel_report: $build: no *.cu.o.ptxas. Configure with -DCMAKE_CUDA_FLAGS=-Xptxas=-v and build" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One line per kernel: registers, shared bytes, stack bytes, bytes of spill stores and loads, name.
awk -v architecture="'$architecture'" '
  /Compiling entry function/ {
    match($0, /\047[^\047]+\047/); kernel = substr($0, RSTART + 1, RLENGTH - 2); counts = index($0, architecture) }
  /bytes stack frame/ { stack = $1; spills = $5 + $9 }
  /Used [0-9]+ registers/ && counts {
    match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5, RLENGTH - 5)
    shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH - 11) : 0
    print registers "\t" shared "\t" stack "\t" spills "\t" kernel
  }' "${logs[@]}" | c++filt | sed -E 's/dtrain::(cuda::)?//g; s/\(anonymous namespace\):://g; s/\tvoid /\t/; s/\([^()]*\)$//' \
  | sort -t $'\t' -k5 > "$work/table"
{ printf 'registers\tshared\tstack\tspills\tkernel\n'; cat "$work/table"; } | column -t -s $'\t'

failed=0
fail() { echo "kernel_report: $*" >&2; failed=1; }
hot_lines() { awk -F '\t' -v pattern="^$1" '$5 ~ pattern' "$work/table"; }

for hot in "${hot_kernels[@]}"; do
  pattern=${hot%% load*}
  [ -n "$(hot_lines "$pattern")" ] || fail "no kernel matches ${pattern}"
  hot_lines "$pattern" | while IFS=$'\t' read -r _ _ stack spills kernel; do
    [ "$stack" = 0 ] && [ "$spills" = 0 ] || echo "$kernel: $stack bytes of stack, $spills bytes of register spills"
  done > "$work/spills"
  while read -r line; do fail "$line"; done < "$work/spills"
done

find_tool() {
  command -v "$1" || PATH=${CUDA_HOME:-}/bin:${CUDA_PATH:-}/bin:/usr/local/cuda/bin command -v "$1" || true
}
cuobjdump=$(find_tool cuobjdump)
if [ -z "$cuobjdump" ] || [ -z "$(find_tool nvdisasm)" ]; then
  echo "kernel_report: 128-bit accesses were not checked: cuobjdump or nvdisasm not found"
  exit $failed
fi
PATH=$(dirname "$cuobjdump"):$PATH  # cuobjdump runs nvdisasm
for log in "${logs[@]}"; do
  "$cuobjdump" -arch "$architecture" -sass "${log%.ptxas}"
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
      print $3 ": " $1 " 128-bit loads and " $2 " 128-bit stores" }' "$work/accesses" > "$work/narrow"
  while read -r line; do fail "$line"; done < "$work/narrow"
done
echo "kernel_report: 128-bit accesses were checked"
exit $failed
