#!/usr/bin/env bash
# Trains Mask R-CNN on the hosts of an EC2 cluster; the same command resumes an interrupted run.
#     HOSTFILE=~/hostfile BATCH_NORM=FreezeBN k8s/ec2/run.sh [ARGUMENT...]
# The data set, COCO, is the first of /fsx/data (FSx for Lustre), /efs/data (EFS) and ~/data (each host's EBS volume).
# FS, a file system with the data in FS/data, and DATA, a folder, override it; FSX and EFS override the mount points.
# HOSTFILE is the hostfile of mpirun with a line `HOST slots=GPUS` per host, as written by stack.sh. BATCH_NORM is
# FreezeBN, SyncBN or GN. Appends arguments to `dtrain-mask-rcnn train`: flags as --NAME=VALUE, configuration keys as
# KEY=VALUE. Results are in FS/mask-rcnn-coco-RANKS-NAME-DATE, where FS is the file system of the data, and NAME its
# last component. With data on EBS, NAME is ebs, and FS is /fsx, /efs or, on a single host, the home directory.
# Resumes the newest folder without a file `done` that was started with the same BATCH_NORM, DATA and arguments, also
# with another number of ranks; NEW=1 starts a new run.
# Exit codes: as dtrain-mask-rcnn and dtrain-mpirun (1 usage, 2 data, 4 a rank, a host or the network, 75 stopped
# after a checkpoint, and mpirun's, such as 137 for a killed rank), 6 a folder could not be written.
set -euo pipefail
die() {
  echo "run.sh: $1" >&2
  exit "${2:-1}"
}
fsx=${FSX:-/fsx} efs=${EFS:-/efs}
fs=${FS:-} kind=
if [ -z "$fs" ]; then
  for fs in "$fsx" "$efs" "$HOME"; do [ ! -d "$fs/data" ] || break; done
  if [ "$fs" = "$HOME" ]; then
    if [ -z "${DATA:-}" ]; then DATA=$HOME/data kind=ebs; fi
    for fs in "$fsx" "$efs" "$HOME"; do ! mountpoint -q "$fs" || break; done
  fi
fi
fs=${fs%/}
kind=${kind:-${fs##*/}}
data=${DATA:-$fs/data}
hostfile=${HOSTFILE:-$HOME/hostfile}
norm=${BATCH_NORM:-FreezeBN}
case $norm in FreezeBN | SyncBN | GN) ;; *) die "BATCH_NORM is '$norm': expected FreezeBN, SyncBN or GN" ;; esac
[ -d "$fs" ] || die "no such folder $fs: mount the shared file system, or set FS"
{ [ -f "$hostfile" ] && [ -r "$hostfile" ] && [ "$(stat -Lc %s "$hostfile")" -le 1048576 ]; } ||
  die "there is no hostfile $hostfile of 1 MiB at most: 'stack.sh hosts' writes one, or set HOSTFILE"
ranks=$(awk '{ sub(/#.*/, "") } NF { n = 1; for (i = 2; i <= NF; i++) if ($i ~ /^slots=[0-9]+$/) n = substr($i, 7)
  total += n } END { print total + 0 }' "$hostfile")
[ "$ranks" != 0 ] || die "$hostfile names no host"
[[ $ranks =~ ^[1-9][0-9]{0,5}$ ]] || die "$hostfile has $ranks slots: expected at most 999999"
[ "$kind" != ebs ] || [ -d "$data" ] || die "there is no $fsx/data, $efs/data or $data: copy the data set, or set FS"
hosts=$(awk '{ sub(/#.*/, "") } NF { print $1 }' "$hostfile" | sort -u | wc -l)
[ "$fs" != "$HOME" ] || [ "$hosts" = 1 ] ||
  die "results of $hosts hosts need a shared file system: mount $efs, run attach-fsx.sh, or set FS"
command -v dtrain-mpirun >/dev/null || die "there is no dtrain-mpirun: run install.sh on each host"

# Identity of a run, which must match to resume it.
identity=$(printf '%q\n' "BATCH_NORM=$norm" "DATA=$data" "$@")
run=
newest=
if [ "${NEW:-0}" != 1 ]; then
  for folder in "$fs"/mask-rcnn-coco-*-"$kind"-*/; do
    folder=${folder%/}
    date=${folder##*-"$kind"-}
    if [[ ! -e $folder/done && $date > $newest && "$(cat "$folder/arguments" 2>/dev/null)" == "$identity" ]]; then
      run=$folder
      newest=$date
    fi
  done
fi
if [ -n "$run" ]; then
  echo "run.sh: resuming $run"
else
  run=$fs/mask-rcnn-coco-$ranks-$kind-$(date -u +%Y-%m-%d-%H-%M-%S)
  echo "run.sh: results in $run"
  mkdir "$run" || die "$run cannot be written" 6
  printf '%s\n' "$identity" >"$run/arguments" || die "$run cannot be written" 6
fi
mkdir -p "$run/logs" || die "$run cannot be written" 6

flags=()
keys=()
for argument in "$@"; do
  case $argument in -*) flags+=("$argument") ;; *) keys+=("$argument") ;; esac
done
# Excludes Docker's bridge, which has the same address on each host.
result=0
dtrain-mpirun --hostfile "$hostfile" -np "$ranks" -bind-to none -map-by slot -mca pml ob1 -mca btl '^openib' \
  -mca btl_tcp_if_exclude 'lo,docker0' -mca oob_tcp_if_exclude 'lo,docker0' \
  -x "NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-^lo,docker0}" \
  -x "HOROVOD_FUSION_THRESHOLD=${HOROVOD_FUSION_THRESHOLD:-67108864}" \
  -output-filename "$run/logs/$(date -u +%Y-%m-%d-%H-%M-%S)" \
  dtrain-mask-rcnn train --preset=tensorpack2019 --batch_size=1 --data_dir="$data" --train_dir="$run/train_log/maskrcnn" \
  --expect_ranks="$ranks" "${flags[@]}" --config MODE_MASK=True MODE_FPN=True \
  'DATA.TRAIN=["coco_train2017"]' 'DATA.VAL=("coco_val2017",)' TRAIN.IMAGES_PER_EPOCH=120000 TRAIN.EVAL_PERIOD=1 \
  'TRAIN.LR_SCHEDULE=[120000,160000,180000]' TRAIN.BASE_LR=0.01 TRAIN.CHECKPOINT_PERIOD=1 \
  "BACKBONE.WEIGHTS=$data/pretrained-models/COCO-R50FPN-MaskRCNN-Standard.npz" "BACKBONE.NORM=$norm" TRAINER=horovod \
  "${keys[@]}" || result=$?
[ $result != 0 ] || : >"$run/done"
exit $result
