#!/usr/bin/env bash
# Quickstart: from a clean clone to a trained and evaluated Mask R-CNN with pictures of its detections. Training takes
# about three minutes on two idle cores. Arguments are those of quickstart.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/quickstart-common.sh

programs=(dtrain-data dtrain-mask-rcnn)
get_programs "$@"

work=build/quickstart-detection
data=$work/data
step "3/5 Data: 1200 synthetic images in COCO's layout"
if [ -e "$data" ]; then
  echo "$data exists."
else
  build/bin/dtrain-data shapes --output "$data" --images 1200 --validation 200 --seed 1
fi

settings=(--device=cpu --config_file=scripts/quickstart-detection.cfg)
step "4/5 Training: a small Mask R-CNN, from random weights"
rm -rf "$work/train"
train=(build/bin/dtrain-mask-rcnn train "${settings[@]}" --data_dir="$data" --train_dir="$work/train")
echo "${train[*]} --display_every=50"
# The output fits a terminal; the log has all losses and metrics.
"${train[@]}" --display_every=50 | tee "$work/train.log" | sed -unE '
  s|^(step [^ ]+  loss [^ ]+) .* ([^ ]+ images/s)$|\1  \2|p
  s|^(step [0-9]+)  ([^ ]+/IoU=0.5: .*)|\1  \2|p'

weights=$(ls -d "$work"/train/checkpoints/step-*/model.safetensors | sort -V | tail -n 1)
trained=(--load="$weights" "${settings[@]}")
step "5/5 Evaluation, and pictures of detections in validation images"
build/bin/dtrain-mask-rcnn eval "${trained[@]}" --data_dir="$data" | tee "$work/evaluation.log"
rm -rf "$work/pictures"
images=("$data"/val/*.jpg)
build/bin/dtrain-mask-rcnn predict "${trained[@]}" --annotations="$data/annotations/instances_val.json" \
  --output="$work/pictures" "${images[@]:0:24}" >"$work/found.txt"
ap50() { sed -n "s|^val-mAP($1)/IoU=0.5: ||p" "$work/evaluation.log"; }
boxes=$(ap50 bbox) masks=$(ap50 segm)
awk -v boxes="$boxes" -v masks="$masks" 'BEGIN { exit !(boxes >= 0.8 && masks >= 0.7) }' ||
  { echo "AP at IoU 0.5 is $boxes (boxes), $masks (masks), expected at least 0.8 and 0.7: this build is faulty."
    exit 1; }
end_step

cat <<END

Success: average precision at IoU 0.5 is $boxes (boxes), $masks (masks).
  pictures      $work/pictures/
  detections    $work/found.txt
  evaluation    $work/evaluation.log
  log           $work/train.log
  checkpoint    $(dirname "$weights")/

Next: change keys in scripts/quickstart-detection.cfg, generate other images
(build/bin/dtrain-data shapes --help), or train on COCO from torchvision's weights:
  build/bin/dtrain-mask-rcnn train --data_dir=coco --train_dir=run \\
    --load=resnet50_coco.safetensors
docs/detection.md explains more.
END
