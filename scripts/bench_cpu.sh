#!/usr/bin/env bash
# Benchmarks dtrain on the CPU against PyTorch, ONNX Runtime, OpenVINO and others; prints tables of speed ratios.
#   scripts/bench_cpu.sh          five rounds of all benchmarks, about one hour on two cores
#   scripts/bench_cpu.sh quick    one short round, about 10 minutes
#   scripts/bench_cpu.sh --save NAME    also writes benchmarks/results/<date>-cpu-NAME.json; --help lists flags
# Installs the newest PyTorch, ONNX Runtime and OpenVINO with pip into build/peers once (about 6 GB). PYTHON selects
# another Python that has them. Run it on an idle machine.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh test
cmake --preset release -DDTRAIN_BENCHMARKS=ON >/dev/null
cmake --build --preset release --target programs step_bench decode_bench record_bench tape_bench depthwise_bench inference_bench

peers=build/peers
if [ -z "${PYTHON:-}" ] && [ ! -e $peers/complete ]; then
  echo "Installing the newest PyTorch, ONNX Runtime and OpenVINO into $peers"
  if python3 -m venv $peers && $peers/bin/pip install --quiet torch torchvision onnxruntime onnx openvino; then
    touch $peers/complete
  else
    echo "pip failed: comparing with Debian's PyTorch"
  fi
fi
[ -n "${PYTHON:-}" ] || { [ -e $peers/complete ] && PYTHON=$peers/bin/python3; } || PYTHON=/usr/bin/python3
exec benchmarks/compare_cpu.py --python "$PYTHON" "$@"
