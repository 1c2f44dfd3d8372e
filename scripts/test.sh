#!/usr/bin/env bash
# Builds and tests a change with -Werror.
#     scripts/test.sh                  all tests: optimised GCC build, with CUDA kernels if a toolkit is installed;
#                                      Clang build with sanitizers, emulated CUDA kernels and fuzzers
#     scripts/test.sh --changed [REF]  only tests affected by the changes since REF (default: merge base with the
#                                      upstream branch), nearest first, within $DTRAIN_TEST_SECONDS (default 150)
#     scripts/test.sh --long           all tests and exploratory ones: soak tests, one minute of each fuzzer
# Prints a table of times at the end and writes it to build-ci/records/times.json. Tests find real data in
# $DTRAIN_TEST_DATA (default ../shared/data) and report skipped cases.
set -euo pipefail
cd "$(dirname "$0")/.."
{  # bash reads the whole block first, so that the script may be edited while it runs
mode=${1:-}
case $mode in
  '' | --long) [ $# -le 1 ] || { echo "$0: $2: expected no more arguments" >&2; exit 1; } ;;
  --changed) ;;
  *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 1 ;;
esac

export DTRAIN_TEST_DATA=${DTRAIN_TEST_DATA:-$(dirname "$PWD")/shared/data}
export OMP_WAIT_POLICY=passive  # tests run in parallel: waiting threads yield the CPU
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1  # clones in other directories share the compiler cache
export CCACHE_DEPEND=1  # uses the compiler's dependency lists instead of the preprocessor
export LSAN_OPTIONS=suppressions=$PWD/tests/leaks.txt:print_suppressions=0
optimized='cpu|distributed|parity|gpu|k8s' sanitized='cpu|fuzz' without=long
if [ "$mode" = --long ]; then
  without='^$'
  export DTRAIN_FUZZ_SECONDS=${DTRAIN_FUZZ_SECONDS:-60}
fi
# A compiler process takes up to 2 GiB: limits parallel compilations by the available memory.
memory_gib=$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
jobs=$(nproc)
[ $((memory_gib / 2)) -ge "$jobs" ] || jobs=$((memory_gib / 2 > 0 ? memory_gib / 2 : 1))

records=$PWD/build-ci/records
rm -rf "$records"
mkdir -p "$records"
: >"$records/phases.tsv"
step() { echo; echo "== $* =="; }
# phase NAME KIND TREE COMMAND...: runs COMMAND and records time before and after it for scripts/test_times.py.
phase() {
  local id=$1$'\t'$2$'\t'$3 status=0
  [ "$2" != build ] || cp "$3/.ninja_log" "$records/$1.ninja_log" 2>/dev/null || true
  shift 3; clocks start; "$@" || status=$?; clocks "$status"
  return "$status"
}
clocks() {
  local self machine=-
  read -r self </proc/self/stat
  { read -r machine </proc/stat; } 2>/dev/null || true
  printf '%s\t%s\t%s\t%s\t%s\n' "$id" "$1" "$EPOCHREALTIME" "$self" "$machine" >>"$records/phases.tsv"
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  step "Build, preset $preset"
  phase "build-$preset" build "build-$preset" compile "$@"
}
compile() { cmake --preset "$1" && cmake --build --preset "$1" -j "$jobs" ${2:+--target "${@:2}"}; }
# run_tests PRESET JOBS CTEST-ARGUMENTS...
run_tests() {
  local preset=$1 parallel=$2
  phase "tests-$preset" tests "build-$preset" ctest --no-tests=error --test-dir "build-$preset" -j "$parallel" \
    --output-on-failure --output-junit "$records/tests-$preset.xml" "${@:3}"
}
# More parallel tests than cores: tests of ranks often wait for each other or for a timeout. Half of the optimised tests
# are tests of ranks, but only few of the sanitized ones.
many=$((jobs * 2 + 1)) more=$((jobs + 1))

tools='' tools_log=$(mktemp)
finish() {
  local status=$? times=0
  [ -z "$tools" ] || kill "$tools" 2>/dev/null || true
  rm -f "$tools_log"
  step "Time"
  scripts/test_times.py "$records" || times=$?
  exit $((status ? status : times))
}
trap finish EXIT

step "Debian packages"
phase packages other - scripts/setup.sh test
if [ "$mode" != --changed ]; then
  # Download tools in parallel with the build.
  for script in k8s/tools.sh k8s/terraform/tools.sh k8s/aws/tools.sh object_storage/swift.sh python_packages.sh; do
    timeout 300 "tests/$script" || echo "tests/$script failed. Tests that need its tools are skipped, which fails this run."
  done >"$tools_log" 2>&1 &
  tools=$!
fi

step "Format"
phase format other - scripts/format.sh --check

result=0
if [ "$mode" = --changed ]; then
  for preset in ci ci-sanitized; do
    [ -e "build-$preset/build.ninja" ] || cmake --preset "$preset"
  done
  step "Tests that the changes affect"
  scripts/affected_tests.py ${2:+--since "$2"} --budget "${DTRAIN_TEST_SECONDS:-150}" --jobs "$jobs" \
    "build-ci:^($optimized)\$" "build-ci-sanitized:^($sanitized)\$"
  for preset in ci ci-sanitized; do
    mapfile -t targets <"build-$preset/affected_targets.txt"
    [ ${#targets[@]} = 0 ] || build "$preset" "${targets[@]}"
  done
  for preset in ci ci-sanitized; do
    [ ! -s "build-$preset/affected_tests.txt" ] || { step "Tests, preset $preset";
      run_tests "$preset" "$many" -R "$(cat "build-$preset/affected_tests.regex")" || result=$?; }
  done
  exit $result
fi

build ci
build ci-sanitized

step "Tools that Debian does not have"
wait "$tools" || true
tools=''
cat "$tools_log"

step "Tests under the address and undefined-behaviour sanitizers, and fuzzers"
run_tests ci-sanitized "$more" -L "$sanitized" -LE "$without" || result=$?

step "Tests, optimised"
run_tests ci "$many" -L "$optimized" -LE "$without" || result=$?

step "Skipped, and why"
skips=0
tests/check_skips.py "build-ci-sanitized:$records/tests-ci-sanitized.xml" "build-ci:$records/tests-ci.xml" || skips=$?
exit $((result ? result : skips))
}
