#!/usr/bin/env bash
# Prints the CUDA libraries that the programs load with dlopen, one path per line. The node provides the driver's
# libraries.
set -euo pipefail
folders=(/usr/lib/x86_64-linux-gnu /usr/local/cuda/lib64)
# cuDNN loads its sub-libraries itself.
for name in libcublasLt libcublas libnvjpeg libnccl libcudnn libcudnn_graph libcudnn_engines_precompiled \
  libcudnn_engines_runtime_compiled libcudnn_heuristic libcudnn_ops libcudnn_cnn libnvrtc libnvrtc-builtins; do
  found=$(find -L "${folders[@]}" -maxdepth 1 -name "$name.so.*" -print -quit)
  [ -n "$found" ] || { echo "cuda-libraries.sh: library not found: $name" >&2; exit 6; }
  find -L "${folders[@]}" -maxdepth 1 -name "$name.so.*"
done
