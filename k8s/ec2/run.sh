#!/usr/bin/env bash
# Trains Mask R-CNN on the hosts of an EC2 cluster; the same command resumes a run that was interrupted.
#     FS=/efs HOSTFILE=~/hostfile BATCH_NORM=FreezeBN k8s/ec2/run.sh [ARGUMENT...]
# FS is the shared file system (/efs), DATA its folder of COCO's shards (FS/data), and HOSTFILE the list of mpirun,
# a line `HOST slots=GPUS` for each host, which stack.sh writes. BATCH_NORM is FreezeBN, SyncBN or GN. Arguments are
# added to those of `dtrain-mask-rcnn train`; KEY=VALUE belongs to its --config, after its flags. Results lie in
# FS/mask-rcnn-coco-RANKS-NAME-DATE, NAME being the last part of FS. The newest folder of that kind without a file `done`
# is resumed; NEW=1 begins another one.
# Exit codes: those of dtrain-mask-rcnn and dtrain-mpirun (1 usage, 4 a host or the network, 75 stopped after a
# checkpoint), 6 a folder could not be written.
set -euo pipefail
die() {
  echo "run.sh: $1" >&2
  exit "${2:-1}"
}
fs=${FS:-/efs}
fs=${fs%/}
data=${DATA:-$fs/data}
hostfile=${HOSTFILE:-$HOME/hostfile}
norm=${BATCH_NORM:-FreezeBN}
case $norm in FreezeBN | SyncBN | GN) ;; *) die "BATCH_NORM is '$norm': expected FreezeBN, SyncBN or GN" ;; esac
[ -d "$fs" ] || die "there is no folder $fs: mount the shared file system, or set FS"
[ -r "$hostfile" ] || die "there is no hostfile $hostfile: 'stack.sh hosts' writes one, or set HOSTFILE"
ranks=$(awk '{ sub(/#.*/, "") } NF { n = 1; for (i = 2; i <= NF; i++) if ($i ~ /^slots=[0-9]+$/) n = substr($i, 7)
  total += n } END { print total + 0 }' "$hostfile")
[ "$ranks" -gt 0 ] || die "$hostfile names no host"

prefix=$fs/mask-rcnn-coco-$ranks-${fs##*/}-
run=
if [ "${NEW:-0}" != 1 ]; then
  for folder in "$prefix"*/; do  # dates sort, so that the last one is the newest
    if [ -d "$folder" ] && [ ! -e "$folder/done" ]; then run=${folder%/}; fi
  done
fi
if [ -n "$run" ]; then
  echo "run.sh: going on in $run"
else
  run=$prefix$(date -u +%Y-%m-%d-%H-%M-%S)
  echo "run.sh: results in $run"
fi
mkdir -p "$run/logs" || die "$run cannot be written" 6

flags=()
keys=()
for argument in "$@"; do
  case $argument in -*) flags+=("$argument") ;; *) keys+=("$argument") ;; esac
done
result=0
dtrain-mpirun --hostfile "$hostfile" -np "$ranks" -bind-to none -map-by slot -mca pml ob1 -mca btl '^openib' \
  -output-filename "$run/logs/$(date -u +%Y-%m-%d-%H-%M-%S)" \
  dtrain-mask-rcnn train --preset=tensorpack --batch_size=1 --data_dir="$data" --train_dir="$run/train_log/maskrcnn" \
  --expect_ranks="$ranks" "${flags[@]}" --config MODE_MASK=True MODE_FPN=True \
  'DATA.TRAIN=["coco_train2017"]' 'DATA.VAL=("coco_val2017",)' "BACKBONE.NORM=$norm" TRAINER=horovod "${keys[@]}" ||
  result=$?
[ $result != 0 ] || : >"$run/done"
exit $result
