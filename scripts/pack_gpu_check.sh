#!/usr/bin/env bash
# Packs an archive for gpu_check.sh on a GPU machine without this project's dependencies: programs, tests, benchmarks,
# their shared libraries and a small sample of real data. About 45 MiB.
#   scripts/pack_gpu_check.sh [FILE]     default: gpu-check.tar.xz, which git ignores
# On the GPU machine: scripts/gpu_check.sh full --prebuilt FILE
set -euo pipefail
cd "$(dirname "$0")/.."
archive=${1:-gpu-check.tar.xz}
architectures=${DTRAIN_CUDA_ARCHITECTURES:-90-real}
build=build-gpu-check
out=$build/pack
data=${DTRAIN_TEST_DATA:-$(dirname "$PWD")/shared/data}
limit_mib=60

echo "== Build for $architectures in $build/ =="
cmake --preset release-cuda -B "$build" -DDTRAIN_CUDA_ARCHITECTURES="$architectures" -DDTRAIN_TESTS=ON -DDTRAIN_BENCHMARKS=ON
programs=(dtrain-{cnn-benchmarks,allreduce-benchmark,info,data})
# Programs of tests labelled gpu, and dtrain's side of the parity tests with PyTorch.
mapfile -t tests < <(ctest --test-dir "$build" -N -L gpu | sed -n 's/.*: gpu\.\([^.]*\)\..*/test_\1/p' | sort -u)
tests+=(parity_model parity_ops parity_detector)
benchmarks=()
for program in conv_bench chain_bench batch_norm_bench op_bench roi_align_bench update_bench step_bench detector_bench jpeg_decode_bench; do
  [ ! -f "benchmarks/$program.cpp" ] || benchmarks+=("$program")
done
cmake --build "$build" -j "$(nproc)" --target "${programs[@]}" "${tests[@]}" "${benchmarks[@]}"

echo "== Pack into $archive =="
rm -rf "$out"
mkdir -p "$out"/{bin,tests,benchmarks,lib,data}
install -s "${programs[@]/#/$build/bin/}" "$out/bin"
install -s "${tests[@]/#/$build/tests/}" "$out/tests"
install -s "${benchmarks[@]/#/$build/benchmarks/}" "$out/benchmarks"
git describe --always --dirty >"$out/commit" 2>/dev/null || echo unknown >"$out/commit"

# Libraries of every Linux system are left out. gpu_check.sh uses cuDNN and cuBLAS of CUDA or PyTorch.
everywhere='^(linux-vdso|ld-linux.*|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so'
ldd "$out"/{bin,tests,benchmarks}/* | awk '$2 == "=>" && $3 ~ "^/" {print $3}' | sort -u | while read -r library; do
  [[ $(basename "$library") =~ $everywhere ]] || install -s "$(realpath "$library")" "$out/lib/$(basename "$library")"
done

# PyTorch does not contain nvJPEG: it is packed from $NVJPEG_LIBRARY, e.g. of PyPI's nvidia-nvjpeg, or from the toolkit.
nvjpeg=${NVJPEG_LIBRARY:-$(ls /usr/local/cuda/lib64/libnvjpeg.so.[0-9][0-9] 2>/dev/null | sed -n 1p || true)}
[ -z "$nvjpeg" ] || cp -L "$nvjpeg" "$out/lib/"

if [ -d "$data/imagenet_sample/train" ]; then
  # Photographs for a training of a hundred steps: one of every other class.
  few=$(mktemp -d)
  trap 'rm -rf "$few"' EXIT
  find "$data/imagenet_sample/train" -mindepth 1 -maxdepth 1 -type d | sort | sed -n 'n;p' | while read -r class; do
    mkdir -p "$few/train/$(basename "$class")"
    find "$class" -type f | sort | sed -n 1p | xargs -I{} cp {} "$few/train/$(basename "$class")/"
  done
  ls "$few/train" >"$few/labels.txt"
  "$build/bin/dtrain-data" imagenet --input "$few" --labels "$few/labels.txt" --output "$out/data/imagenet" --shards 2 ||
    echo "no photographs: dtrain-data failed"
else
  echo "no photographs: $data/imagenet_sample does not exist"
fi

tar -C "$out" -c . | xz -3 >"$archive"
size=$(du -m "$archive" | cut -f1)
echo "$archive: $size MiB"
[ "$size" -le "$limit_mib" ] || { echo "$archive: $size MiB, expected at most $limit_mib MiB"; exit 1; }
