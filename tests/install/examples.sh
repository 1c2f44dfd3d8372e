#!/usr/bin/env bash
# examples.sh BUILD_DIR COMPILER: builds the installed examples against the installed library by find_package alone, and
# runs each as the tutorial does: a training that is killed and resumed with the same bits, stopped, and run on two
# ranks; an op whose gradient is checked; fine-tuning for other classes; several threads that classify alike.
set -Eeuo pipefail
build=$1
export CXX=$2 OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1
place=$(mktemp -d)
training=
trap '[ -z "$training" ] || kill -KILL $training 2>/dev/null; rm -rf "$place"' EXIT
trap 'echo "ERROR: line $LINENO: $BASH_COMMAND: exit code $?"; tail -n 20 "$place"/*.log' ERR
cmake --install "$build" --prefix "$place/prefix" >/dev/null
cmake -S "$place/prefix/share/doc/dtrain/examples" -B "$place/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$place/prefix" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wshadow -Werror -O1" >/dev/null
cmake --build "$place/build" -- --quiet
cd "$place"
export PATH=$place/build:$place/prefix/bin:$PATH
same() { cmp "$1/model.safetensors" "$2/model.safetensors"; }

custom_op

# 240 drawn images of classes 1 to 9, in batches of 4: eight epochs are 480 steps, with checkpoints after every 50.
dtrain-data synthesize --output records --classes 9 --image_size 32 --train 240 --validation 36 --shards 2 --seed 1 >/dev/null
train_cifar records whole 8 4 > whole.log
grep -q 'step 60: top-1' whole.log
train_cifar records killed 8 4 > killed.log 2>&1 &
training=$!
until [ -e killed/checkpoints/step-50/MANIFEST.json ]; do kill -0 $training; sleep 0.02; done
kill -KILL $training
wait $training 2>/dev/null || true
training=
[ ! -e killed/checkpoints/step-480 ]
train_cifar records killed 8 4 >/dev/null
same whole/checkpoints/step-480 killed/checkpoints/step-480

train_cifar records stopped 8 4 > stopped.log 2>&1 &
training=$!
until grep -q '^step' stopped.log; do kill -0 $training; sleep 0.02; done
kill -TERM $training
code=0
wait $training || code=$?
training=
[ $code = 75 ]
train_cifar records stopped 8 4 >/dev/null
same whole/checkpoints/step-480 stopped/checkpoints/step-480

if command -v mpirun >/dev/null; then
  mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2 train_cifar records ranks 2 4 > ranks.log 2>&1
  # Two epochs of 30 steps each, which one rank alone reports, and one model.
  grep 'top-1' ranks.log | cut -d : -f 1 | diff - <(printf 'step 30\nstep 60\n')
fi

dtrain-cnn-benchmarks --device=cpu --model=resnet18_v1.5 --image_size=32 --num_classes=7 --batch_size=4 --num_batches=1 \
  --num_warmup_batches=0 --train_dir=trained > trained.log 2>&1
weights=$(echo trained/checkpoints/step-*/model.safetensors)
finetune "$weights" records 9 tuned.safetensors 2
python3 - "$weights" tuned.safetensors <<'END'
import json, struct, sys
def tensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    return {name: data[slice(*entry["data_offsets"])] for name, entry in header.items() if name != "__metadata__"}
before, after = map(tensors, sys.argv[1:])
assert all(before[name] == after[name] for name in before if name.startswith(("conv1", "bn1.running", "layer1.0.conv")))
assert before["layer4.0.conv1.weight"] != after["layer4.0.conv1.weight"]
END

if [ -d "${DTRAIN_TEST_DATA:-}/imagenet_sample" ]; then
  # sed reads to the end where head would leave early and end sort, and with it this script, by a broken pipe.
  find "$DTRAIN_TEST_DATA/imagenet_sample" -name '*.JPEG' | sort | sed -n 1,12p > pictures
  echo "$place/nonexistent.jpg" >> pictures
  classify_server resnet18_v1.5 tuned.safetensors 9 1 < pictures | sort > one
  classify_server resnet18_v1.5 tuned.safetensors 9 4 < pictures | sort > four
  cmp one four
  [ "$(grep -c 'class [0-8], probability [01]\.' one)" = 12 ]
  grep -q 'nonexistent.jpg: cannot be opened' one
else
  echo "SKIPPED: classify_server: there are no pictures in ${DTRAIN_TEST_DATA:-DTRAIN_TEST_DATA}/imagenet_sample"
fi
