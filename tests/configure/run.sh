#!/usr/bin/env bash
# run.sh SOURCE_DIR: configures beside an nvcc that knows no C++20. With DTRAIN_CUDA=AUTO the table has to say why CUDA
# is off, with ON the configuration has to end with the same reason.
set -euo pipefail
source=$1
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cat >"$place/nvcc" <<'NVCC'
#!/bin/sh
echo "nvcc fatal   : Value 'c++20' is not defined for option 'std'" >&2
exit 1
NVCC
chmod +x "$place/nvcc"

configure() {
  cmake -S "$source" -B "$place/$1" -G Ninja -DDTRAIN_TESTS=OFF -DDTRAIN_BENCHMARKS=OFF -DDTRAIN_CUDA="$1" \
    -DDTRAIN_NVCC="$place/nvcc" -DDTRAIN_CUDA_ARCHITECTURES="80-real;90-virtual" 2>&1
}
expect() {
  tr -s '[:space:]' ' ' <"$place/$1.log" | grep -F "$2" >/dev/null || { echo "DTRAIN_CUDA=$1: no \"$2\" in:" && cat "$place/$1.log" && exit 1; }
}
reason="$place/nvcc cannot compile C++20 for 80-real 90-virtual: nvcc fatal : Value 'c++20' is not defined"
configure AUTO >"$place/AUTO.log" || { cat "$place/AUTO.log" && exit 1; }
expect AUTO "off: $reason"
! configure ON >"$place/ON.log" || { echo "DTRAIN_CUDA=ON was met" && exit 1; }
expect ON "$reason"
