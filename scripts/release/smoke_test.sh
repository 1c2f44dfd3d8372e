#!/usr/bin/env bash
# smoke_test.sh PREFIX [LIBRARY]: tries an installed dtrain: programs in PREFIX/bin, library in LIBRARY (default
# PREFIX). Needs nothing but the base system. Synthesizes and verifies records; trains 10 steps of ResNet-18, resumes to
# 20; trains on two ranks over TCP; completes a command line in bash. Where g++ (C++20) and CMake are installed, builds
# the examples against the library and runs one; under mpirun, if it is installed, the ranks connect over MPI. Prints
# what ran; stops at the first failure.
set -Eeuo pipefail
prefix=$(cd "$1" && pwd)
library=$(cd "${2:-$1}" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
trap 'echo "FAILED: $BASH_COMMAND"; tail -n 20 "$place"/*.log' ERR
export PATH=$prefix/bin:$PATH OMP_WAIT_POLICY=passive
unset LD_LIBRARY_PATH
cd "$place"

for program in "$prefix"/bin/dtrain-*; do
  [ "${program##*/}" = dtrain-mpirun ] || "$program" --help >help.log 2>&1  # whose help is mpirun's
done
dtrain-info >info.log
dtrain-info --ranks >ranks.log
echo "system: $(. /etc/os-release && echo "$PRETTY_NAME"), glibc $(ldd --version | sed -n '1s/.* //p')"
grep '^MPI' ranks.log

dtrain-data synthesize --output records --classes 9 --image_size 32 --train 96 --validation 12 --shards 2 \
  --seed 1 >synthesize.log 2>&1
dtrain-data verify records/* >verify.log 2>&1
train=(dtrain-cnn-benchmarks --device=cpu --data_name=imagenet --data_dir=records --model=resnet18_v1.5 --image_size=32
  --num_classes=10 --batch_size=4 --num_warmup_batches=0 --display_every=5)
"${train[@]}" --num_batches=10 --train_dir=run >train.log 2>&1
grep -q '^total images/sec' train.log
"${train[@]}" --num_batches=20 --train_dir=run >resume.log 2>&1
grep -q 'Restored step 10 ' resume.log
[ -e run/checkpoints/step-20/model.safetensors ]
echo "passed: records, training, resume"

export DTRAIN_SIZE=2 DTRAIN_MASTER_ADDR=127.0.0.1 DTRAIN_MASTER_PORT=$((20000 + RANDOM % 10000))
export DTRAIN_JOB_SECRET=secret-of-the-smoke-test-$RANDOM
DTRAIN_RANK=1 "${train[@]}" --num_batches=10 --expect_ranks=2 >tcp1.log 2>&1 &
DTRAIN_RANK=0 "${train[@]}" --num_batches=10 --expect_ranks=2 >tcp0.log 2>&1
wait $!
unset DTRAIN_SIZE DTRAIN_MASTER_ADDR DTRAIN_MASTER_PORT DTRAIN_JOB_SECRET
echo "passed: two ranks over TCP"

if command -v mpirun >/dev/null; then
  mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2 "${train[@]}" --num_batches=10 \
    --expect_ranks=2 >mpi.log 2>&1
  grep -q '^total images/sec' mpi.log
  echo "passed: two ranks over MPI"
fi

# completes LINE EXPECTED: the only suggestion for LINE is EXPECTED.
completes() {
  bash -c 'source "$1"; COMP_LINE=$2 COMP_POINT=${#2}; read -ra COMP_WORDS <<<"$2"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _dtrain; [ "${COMPREPLY[*]}" = "$3" ]' _ "$library/share/bash-completion/completions/dtrain-data" "$@"
}
completes "dtrain-data ver" verify
completes "dtrain-data synthesize --max" --max_image_size
zgrep -q '^\.SH "NAME"' "$library"/share/man/man1/dtrain-data-synthesize.1*
echo "passed: completion, manual pages"

examples=$library/share/doc/dtrain/examples
if [ -d "$examples" ] && command -v cmake >/dev/null && command -v g++ >/dev/null; then
  cmake -S "$examples" -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$library" >cmake.log 2>&1
  cmake --build build >build.log 2>&1
  build/custom_op >custom_op.log 2>&1
  build/train_cifar records cifar 1 4 >train_cifar.log 2>&1
  echo "passed: examples with $(g++ --version | sed -n 1p)"
fi
