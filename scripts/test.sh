#!/usr/bin/env bash
# Builds everything twice, warnings being errors, and runs the tests of both: optimised, with the GPU arms where a CUDA
# toolkit is installed, and with sanitizers, the kernels of the GPU arms running on the processor. What reads input from
# outside is built a third time, by Clang, and fuzzed.
# Real data for the tests is looked for in $DTRAIN_TEST_DATA, by default ../shared/data; tests say what they skip.
set -euo pipefail
cd "$(dirname "$0")/.."
step() { echo; echo "== $* =="; }

step "Debian packages"
scripts/setup.sh test

# They come while the compilers work: what they cost is mostly waiting.
tools_log=$(mktemp)
for script in k8s/tools.sh k8s/terraform/tools.sh k8s/aws/tools.sh parity/tensorboard.sh; do
  timeout 300 "tests/$script" || echo "Tests that need them are skipped."
done >"$tools_log" 2>&1 &
tools=$!
trap 'kill $tools 2>/dev/null || true; rm -f "$tools_log"' EXIT

export DTRAIN_TEST_DATA=${DTRAIN_TEST_DATA:-$(dirname "$PWD")/shared/data}
export OMP_WAIT_POLICY=passive  # tests run side by side: waiting threads give the processor away
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1  # so that clones in other places share the compiler cache
export CCACHE_DEPEND=1  # headers are those that the compiler lists: nothing is preprocessed twice
# A compiler takes up to 2 GiB: no more of them at a time than memory allows.
memory_gib=$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
jobs=$(nproc)
[ $((memory_gib / 2)) -ge "$jobs" ] || jobs=$((memory_gib / 2 > 0 ? memory_gib / 2 : 1))

step "Format"
scripts/format.sh --check

build() {
  step "Build, preset $1"
  cmake --preset "$1"
  cmake --build --preset "$1" -j "$jobs"
}
build ci
build ci-image
build ci-dev
build ci-fuzz

step "Tools that Debian does not have, where they can be had"
wait "$tools" || true
cat "$tools_log"

step "Tests under the address and undefined-behaviour sanitizers"
ctest --no-tests=error --test-dir build-ci-dev -j "$jobs" -L cpu --output-on-failure

step "Fuzzers, ${DTRAIN_FUZZ_SECONDS:-15} s each"
ctest --no-tests=error --test-dir build-ci-fuzz -j "$jobs" -L fuzz --output-on-failure

step "Tests, optimised"
log=build-ci/tests.log
result=0
# More at a time than there are cores: ranks that wait for each other, or for a limit, leave half of them idle.
ctest --no-tests=error --test-dir build-ci -j "$((jobs * 3 / 2 + 1))" -L 'cpu|distributed|parity|gpu|k8s' --output-on-failure | tee "$log" | sed '/tests passed/,$d' || result=$?
echo "Skipped, and why:"
grep -ho 'SKIPPED: .*' build-ci/Testing/Temporary/LastTest.log | sort | uniq -c || echo "  nothing"
sed -n '/tests passed/,$p' "$log"
[ $result = 0 ] || echo "Failed, and why:"
while IFS=: read -r _ name; do
  echo "$name"
  awk -v name="$name" '/ Test: / {mine = $NF == name} /^<end of output>/ {mine = 0} mine' \
    build-ci/Testing/Temporary/LastTest.log | grep -m 3 -A 8 -E 'Error|Failure|ERROR' | cut -c 1-300 || true
done < <([ $result = 0 ] || cat build-ci/Testing/Temporary/LastTestsFailed.log)
exit $result
