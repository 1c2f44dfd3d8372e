#!/usr/bin/env bash
# Tests the CUDA backend on this machine and benchmarks it against PyTorch on the same GPU.
#   scripts/gpu_check.sh [quick|full|accuracy] [--prebuilt FILE] [--out FOLDER] [--seconds N] [--only REGEX]
# quick: tests of every op, NCCL with one rank, one benchmark. full: everything except accuracy. accuracy: trains on
# CIFAR-10 to 94 % with dtrain and PyTorch; takes minutes and needs cifar10_jpg.tar.gz in $DTRAIN_TEST_DATA.
# One GPU cannot test NCCL kernels: an in-place all-reduce of one rank launches none, and NCCL accepts one rank per GPU
# and communicator only ("Duplicate GPU detected", as of 2.28). With two or more GPUs, ranks on all of them train with
# CUDA graphs and eagerly.
# --prebuilt uses the archive of scripts/pack_gpu_check.sh, packed or unpacked; by default the script builds dtrain.
# Every stage has a time limit and prints one result line; a failure does not stop other stages. Stages without
# measurements run in parallel. --only runs the stages whose names match.
# Logs and results go to --out (default gpu-check-results), the summary also to benchmarks/results/<date>-gpu-<gpu>.json.
# Without a GPU the script is a dry run: each stage runs as far as possible or prints its command. Exit code 1: a stage
# failed.
set -uo pipefail
cd "$(dirname "$0")/.."
usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit "${1:-0}"; }

depth=quick prebuilt= out=gpu-check-results seconds=540 only=
while [ $# -gt 0 ]; do
  case $1 in
    quick | full | accuracy) depth=$1 ;;
    --prebuilt) prebuilt=$2 && shift ;;
    --out) out=$2 && shift ;;
    --seconds) seconds=$2 && shift ;;
    --only) only=$2 && shift ;;
    -h | --help) usage ;;
    *) echo "gpu_check.sh: unknown argument $1" >&2 && usage 1 >&2 ;;
  esac
  shift
done
mkdir -p "$out"
out=$(realpath "$out")
failures=$out/failures.txt
: >"$failures"
end=$(($(date +%s) + seconds))
python=$(command -v python3 || echo python3)
lanes=$(($(nproc) < 16 ? $(nproc) : 16))

# stage NAME SECONDS COMMAND...: runs COMMAND with the log $out/NAME.log and prints one result line. A command that
# prints "SKIPPED: REASON" is skipped.
stage() {
  local name=$1 limit=$2 left=$((end - $(date +%s))) began=$SECONDS result
  shift 2
  [[ $name =~ $only ]] || return 0
  [ "$left" -ge 10 ] || { printf '%-8s %-34s no time left\n' SKIP "$name"; return; }
  [ "$limit" -le "$left" ] || limit=$left
  (timeout -k 5 "$limit" "$@") >"$out/$name.log" 2>&1
  result=$?
  local why=
  if [ $result -eq 124 ] || [ $result -eq 137 ]; then
    result=FAIL why="stopped after $limit s"
  elif [ $result -ne 0 ]; then
    result=FAIL why=$(grep -m1 -E 'FAIL|rror|ERROR' "$out/$name.log" || tail -1 "$out/$name.log")
  elif grep -q 'SKIPPED: ' "$out/$name.log" && ! grep -q '\[       OK \]' "$out/$name.log"; then
    result=SKIP why=$(grep -m1 -o 'SKIPPED: .*' "$out/$name.log")
  else
    result=PASS why=$(grep -m1 -E '^RESULT ' "$out/$name.log" | cut -c8-)
  fi
  [ $result != FAIL ] || echo "$name" >>"$failures"
  printf '%-8s %-34s %4d s  %s\n' "$result" "$name" $((SECONDS - began)) "${why:0:150}"
}

# beside NAME SECONDS COMMAND...: a background stage, without measurements; `wait` waits for all of them.
beside() {
  [[ $1 =~ $only ]] || return 0
  while [ "$(jobs -rp | wc -l)" -ge "$lanes" ]; do wait -n; done
  stage "$@" &
}

# sanitized COMMAND...: runs COMMAND, a test program under compute-sanitizer. Skips devices that the tool does not
# support; a run without tests fails, whatever the tool's exit code.
sanitized() {
  local log result=0
  log=$("$@" 2>&1) || result=$?
  printf '%s\n' "$log"
  case $log in
    *[Dd]evice\ not\ supported*) echo 'SKIPPED: compute-sanitizer does not support this device' ;;
    *'[==========]'*) return "$result" ;;
    *) echo 'FAIL: no test was run' && return 1 ;;
  esac
}
export -f sanitized

echo "== Machine =="
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | sed -n 1p)
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | sed -n 1p)

if [ -n "$prebuilt" ]; then
  programs=$(realpath "$prebuilt")
  if [ -f "$programs" ]; then
    unpacked=$(mktemp -d)
    trap 'rm -rf "$unpacked"' EXIT
    $python -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$programs" "$unpacked" || exit 1
    programs=$unpacked
  fi
  # cuDNN and cuBLAS of PyTorch's wheels, if the toolkit has none.
  vendor=$($python - <<'END' 2>/dev/null
import glob, os, sysconfig
print(":".join(sorted({os.path.dirname(f) for f in glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "**", "lib*.so*"), recursive=True)})))
END
  )
  export LD_LIBRARY_PATH="$programs/lib:${vendor:+$vendor:}${LD_LIBRARY_PATH:-}"
  [ -d "$programs/data/imagenet" ] && records=$programs/data/imagenet
else
  programs=$PWD/build-cuda
  stage build 1800 sh -c 'cmake --preset release-cuda && cmake --build --preset release-cuda -j "$(nproc)"'
  records=$programs/benchmarks/imagenet_sample
fi
records=${records:-}
commit=$(cat "$programs/commit" 2>/dev/null || git rev-parse --short HEAD 2>/dev/null || echo unknown)
echo "GPU: ${gpu:-none: dry run}; driver ${driver:-none}; $(nproc) CPUs; commit $commit"
export GPU_CHECK_DRIVER=$driver GPU_CHECK_COMMIT=$commit
export DTRAIN_SOURCE_DIR=$PWD DTRAIN_BIN_DIR=$programs/bin DTRAIN_TEST_DEVICES=gpu OMP_WAIT_POLICY=passive

if [ $depth = accuracy ]; then
  echo "== CIFAR-10 to 94 % =="
  archive=${DTRAIN_TEST_DATA:-../shared/data}/cifar10_jpg.tar.gz
  command=("$python" -B benchmarks/compare_cifar10.py --recipe 94 --device gpu --build "$programs" --python "$python")
  if [ -z "$gpu" ] || [ ! -f "$archive" ]; then
    printf '%-8s %-34s would run %s on %s\n' SKIP cifar10 "${command[*]}" "$archive"
  else
    stage cifar10 "$seconds" "${command[@]}" --save "${gpu// /-}"
    cp benchmarks/results/*-cifar10-"${gpu// /-}".json "$out"
  fi
  [ ! -s "$failures" ]
  exit
fi

echo "== Ops: values, gradients, GPU against CPU, determinism, in f32, bf16 and f16 =="
[ -x "$programs/tests/test_ops" ] || { echo "FAIL     no tests in $programs/tests" && echo tests >>"$failures"; }
for source in tests/{core,autograd,ops,train,cuda}/*_test.cpp; do  # folders with tests labelled gpu
  program=$programs/tests/test_$(basename "$(dirname "$source")")
  file=$(basename "$source" _test.cpp)
  # Sources that this build excludes have no tests; any other failure of the listing fails the stage.
  if "$program" "$file" --gtest_list_tests 2>&1 | grep 'no test of this program is defined' >/dev/null; then continue; fi
  beside "$(basename "$program")_$file" 120 "$program" "$file" --gtest_color=no
done
wait

if [ $depth = full ]; then
  echo "== Against PyTorch =="
  device=gpu
  [ -n "$gpu" ] || device=cpu
  beside parity.ops 120 "$python" -B tests/parity/ops.py "$programs/tests/parity_ops" --device $device
  beside parity.detection_ops 120 "$python" -B tests/parity/detection_ops.py "$programs/tests/parity_ops" --device $device
  beside parity.detector 240 "$python" -B tests/parity/detector.py "$programs/tests/parity_detector" --device $device
  beside parity.detector_variants 240 "$python" -B tests/parity/detector_variants.py "$programs/tests/parity_detector" --device $device
  for precision in fp32 bf16 fp16; do
    [ $device = gpu ] || [ $precision != fp16 ] || { printf '%-8s %-34s needs a GPU\n' SKIP "parity.resnet50.$precision"; continue; }
    beside "parity.resnet50.$precision" 120 "$python" -B tests/parity/resnet50.py "$programs/tests/parity_model" --device $device --precision $precision
  done
  beside loss_curves 120 "$python" -B benchmarks/compare_gpu.py curves --programs "$programs" --records "$records" --out "$out"

  echo "== Eager against CUDA graphs, resume, determinism =="
  beside same_bits 120 "$python" -B benchmarks/compare_gpu.py same_bits --programs "$programs" --records "$records" --out "$out"
  wait
fi

echo "== NCCL: one rank (no NCCL kernels), and one rank per GPU =="
stage ranks 60 "$python" -B benchmarks/compare_gpu.py ranks --programs "$programs" --out "$out"
stage one_rank 120 "$python" -B benchmarks/compare_gpu.py one_rank --programs "$programs" --out "$out" --depth $depth
stage several_ranks 240 "$python" -B benchmarks/compare_gpu.py several_ranks --programs "$programs" --records "$records" --out "$out"

echo "== Speed =="
stage steps 420 "$python" -B benchmarks/compare_gpu.py steps --programs "$programs" --records "$records" --out "$out" --depth $depth
stage profile 60 "$python" -B benchmarks/compare_gpu.py profile --programs "$programs" --out "$out"
stage detection 420 "$python" -B benchmarks/compare_gpu.py detection --programs "$programs" --out "$out" --depth $depth
stage jpegs 120 "$python" -B benchmarks/compare_gpu.py jpegs --programs "$programs" --records "$records" --out "$out"
stage kernels 300 "$python" -B benchmarks/compare_gpu.py kernels --programs "$programs" --out "$out" --depth $depth

if [ $depth = full ]; then
  echo "== compute-sanitizer on small cases of dtrain's kernels, as far as time allows =="
  # Of the convolutions depthwise only: cuDNN has the kernels of the others.
  for tool in memcheck racecheck synccheck initcheck; do
    for source in libdtrain/ops/*_cuda.cu; do
      family=$(basename "$source" _cuda.cu) tests=$family filter='*:-*Large*'
      [ "$family" != depthwise ] || tests=conv2d filter='*Depthwise*'
      [ -e "tests/ops/${tests}_test.cpp" ] && [[ $family != conv* ]] || continue
      if [ -z "$gpu" ] || ! command -v compute-sanitizer >/dev/null; then
        printf '%-8s %-34s would run compute-sanitizer --tool %s on test_ops %s\n' SKIP "$tool.$family" $tool $tests
      else
        # Without the memory pool each tensor is one allocation, whose bounds the tool checks.
        beside "$tool.$family" 60 env DTRAIN_POOL=0 bash -c 'sanitized "$@"' sanitized \
          compute-sanitizer --tool $tool --error-exitcode 9 "$programs/tests/test_ops" "$tests" --gtest_filter="$filter"
      fi
    done
  done
  wait
fi

"$python" -B benchmarks/compare_gpu.py summary --out "$out" --gpu "${gpu:-none}" || echo summary >>"$failures"
[ ! -s "$failures" ]
