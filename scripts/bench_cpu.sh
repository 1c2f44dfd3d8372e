#!/usr/bin/env bash
# Speed on the CPU against PyTorch and others, both sides in one run: prints a table of ratios.
#   scripts/bench_cpu.sh          five rounds of everything, about 20 minutes on two cores
#   scripts/bench_cpu.sh quick    one short round, about 2 minutes
#   scripts/bench_cpu.sh --save NAME    also writes benchmarks/results/<date>-cpu-NAME.{json,txt}; --help shows the rest
# Nothing else should run on the machine.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh test
cmake --preset release -DDTRAIN_BENCHMARKS=ON >/dev/null
cmake --build --preset release --target programs step_bench decode_bench record_bench tape_bench depthwise_bench
exec "${PYTHON:-/usr/bin/python3}" benchmarks/compare_cpu.py "$@"
