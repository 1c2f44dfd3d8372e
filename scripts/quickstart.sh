#!/usr/bin/env bash
# Quickstart: from a clean clone to a trained and evaluated ResNet.
#     scripts/quickstart.sh                        # programs from dist/dtrain-*.tar.gz if it exists, else from source
#     scripts/quickstart.sh dtrain-VERSION.tar.gz  # programs from a release's archive: any Linux on x86-64, no compiler
#     scripts/quickstart.sh -DDTRAIN_CUDA=ON       # programs from source, with arguments for cmake
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/quickstart-common.sh

programs=(dtrain-data dtrain-cnn-benchmarks)
get_programs "$@"

data=build/quickstart/data
run=build/quickstart/train
step "3/5 Data: synthetic images of 10 classes, as TFRecords in ImageNet's schema, in $data"
if [ -e "$data" ]; then
  echo "$data exists."
else
  rm -rf "$data.part"
  build/bin/dtrain-data synthesize --output "$data.part" --classes 10 --image_size 64 --train 4000 --validation 500 \
    --shards 4 --seed 1
  mv "$data.part" "$data"
fi
build/bin/dtrain-data verify "$data"/*

# Labels are 1 to 10: class 0 is the background, as in ImageNet's schema.
model=(build/bin/dtrain-cnn-benchmarks --device=cpu --data_format=NHWC --model=resnet18 --image_size=64
  --num_classes=11 --data_dir="$data" --data_name=imagenet --preprocessing=torchvision --train_dir="$run")
train=("${model[@]}" --batch_size=32 --num_epochs=6 --num_warmup_batches=0 --optimizer=momentum --weight_decay=1e-4
  --init_learning_rate=0.05 --lr_schedule=cosine --num_learning_rate_warmup_epochs=0.5 --save_model_steps=50)

step "4/5 Training: ResNet-18, 6 epochs; killed after its first checkpoint, then started again"
rm -rf "$run"
echo "${train[*]}"
"${train[@]}" &
training=$!
trap 'kill $training 2>/dev/null || true' EXIT
until [ -n "$(ls "$run"/checkpoints/step-*/MANIFEST.json 2>/dev/null)" ]; do
  kill -0 $training 2>/dev/null || { wait $training; break; }
  sleep 0.5
done
kill -KILL $training 2>/dev/null || true
wait $training 2>/dev/null || true
trap - EXIT
echo "-- killed; the same command resumes from the checkpoint --"
"${train[@]}"

step "5/5 Evaluation"
"${model[@]}" --eval --batch_size=50 --num_eval_epochs=1 | tee build/quickstart/evaluation.log
awk '/^Accuracy @ 1 = / { found = 1; good = $5 >= 0.95 } END { exit !(found && good) }' build/quickstart/evaluation.log ||
  { echo "Top-1 accuracy on the validation set is below 0.95: this build is faulty."; exit 1; }
end_step

cat <<END

Success: training, checkpoints, resuming and evaluation work on this machine. Next, on ImageNet:
  build/bin/dtrain-data imagenet --input ILSVRC2012 --labels synsets.txt --output imagenet --shards 1024
  build/bin/dtrain-cnn-benchmarks --model=resnet50_v1.5 --data_dir=imagenet --optimizer=momentum --weight_decay=1e-4 \\
    --num_epochs=90 --train_dir=run --save_model_steps=5000
  build/bin/dtrain-cnn-benchmarks --model=resnet50_v1.5 --data_dir=imagenet --train_dir=run --eval \\
    --num_eval_epochs=1
$others
To run the tests: scripts/test.sh
END
