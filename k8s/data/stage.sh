#!/usr/bin/env bash
# Downloads a data set, converts it with dtrain-data, uploads it to S3, and verifies the upload.
#     k8s/data/stage.sh [--resume] imagenet|coco|code BUCKET[/PREFIX]
# Environment:
#   STAGE_DIR      working folder (default ./stage-DATASET); an existing one needs --resume
#   STAGE_GB       required disk space, including existing files in STAGE_DIR (default: imagenet 500, coco 100, code 1)
#   IMAGENET_URL   base URL of the archives and of VALIDATION_LABELS
#   IMAGENET_TOKEN optional bearer token for IMAGENET_URL; not passed to any other program
#   VALIDATION_LABELS  file with the labels of ImageNet's validation images: the development kit (default
#                  ILSVRC2012_devkit_t12.tar.gz), or a text file such as imagenet_2012_validation_synset_labels.txt
#   COCO_URL       base URL (default http://images.cocodataset.org)
#   WEIGHTS        initial weights of coco, names of weights.txt separated by spaces (default: all; empty: none)
#   WEIGHTS_URL    base URL (default http://models.tensorpack.com/FasterRCNN)
#   WEIGHTS_LOCK   record of size and SHA-256 of weights (default: weights.lock beside this script). The first download
#                  adds a line; a later download that differs is refused. Keep it under version control.
#   SHARDS         training shards (default: imagenet 1024, coco 256)
# Layouts: PREFIX/imagenet/{classes.txt,train/...,validation/...}, PREFIX/coco2017/{train2017,val2017,annotations,records,
# pretrained-models}/..., PREFIX/code/code.tar.
# Exit codes: 0 done, 1 usage, 2 bad data, 6 disk, download or S3.
set -euo pipefail
# shellcheck disable=SC2034 # transfer.sh names it in its messages
self=stage.sh
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=/dev/null
. "$here/transfer.sh"
# shellcheck source=/dev/null
. "$here/weights.sh"
resume=
[ "${1:-}" != --resume ] || { resume=1 && shift; }
[ $# -eq 2 ] || die "usage: k8s/data/stage.sh [--resume] imagenet|coco|code BUCKET[/PREFIX]"
set_name=$1 url=$(s3_url "$2")
case $set_name in
imagenet) gigabytes=500 shards=1024 needed="aws curl dtrain-data" && : "${IMAGENET_URL:?stage.sh: set it}" ;;
coco)
  gigabytes=100 shards=256 needed="aws curl unzip dtrain-data"
  read -r -d '' -a weights <<<"${WEIGHTS-$(weights_row)}" || true
  [ ${#weights[@]} = 0 ] || needed+=" dtrain-mask-rcnn"
  for name in ${weights[@]+"${weights[@]}"}; do
    [ -n "$(weights_row "$name")" ] || die "WEIGHTS: $(printf %q "$name") is not in $here/weights.txt"
  done
  ;;
code) gigabytes=1 shards=0 needed="aws git" ;;
*) die "unknown data set '$set_name': expected imagenet, coco or code" ;;
esac
gigabytes=${STAGE_GB:-$gigabytes} shards=${SHARDS:-$shards}
whole='^(0|[1-9][0-9]{0,8})$'
[[ $gigabytes =~ $whole && $shards =~ $whole ]] || die "STAGE_GB and SHARDS must be positive integers without leading zeros"
token=${IMAGENET_TOKEN:-}
unset IMAGENET_TOKEN
[[ $token =~ ^[A-Za-z0-9._~+/-]*=*$ ]] || die "IMAGENET_TOKEN has a character that is invalid in a bearer token"
for address in "${IMAGENET_URL:-}" "${COCO_URL:-}" "${WEIGHTS_URL:-}"; do
  [[ $address =~ ^[A-Za-z0-9:/?#.,_~%+\&=@-]*$ ]] || die "a URL has a character that must be percent-encoded (%XX)"
done
labels=${VALIDATION_LABELS:-ILSVRC2012_devkit_t12.tar.gz}
[[ $labels =~ ^[A-Za-z0-9_][A-Za-z0-9._-]*$ ]] || die "VALIDATION_LABELS must be a file name of letters, digits and ._-"
for tool in $needed; do
  command -v "$tool" >/dev/null || case $tool in
    dtrain-*) die "$tool is not installed: a release's dtrain-VERSION-linux-x86_64.tar.gz has it in bin/" ;;
    *) die "$tool is not installed" ;;
  esac
done
stage=${STAGE_DIR:-stage-$set_name}
[ -n "$resume" ] || [ ! -e "$stage" ] || die "$stage exists: remove it, or resume with --resume"
place=$stage held=0
[ -d "$stage" ] || place=$(dirname "$stage")
[ ! -d "$stage" ] || held=$(du -s -B1 "$stage" | cut -f 1)
free=$(df --output=avail -B1 "$place" | tail -n 1)
[ $((free + held)) -ge $((gigabytes * 1000000000)) ] ||
  die "$place has $((free / 1000000)) MB free and holds $((held / 1000000)), but ${gigabytes}000 MB are needed: set STAGE_DIR" 6
mkdir -p "$stage/fetched" "$stage/tree" || die "$stage could not be created" 6
exec 9>"$stage/lock"
flock -w 10 9 || die "$stage is in use by another call" 6
rm -rf "$stage"/work.*
work=$(mktemp -d "$stage/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

# fetch URL NAME: passes URL and token to curl through stdin, so that no file and no argument contains them.
fetch() {
  [ ! -e "$stage/fetched/$2" ] || return 0
  {
    [ "$set_name" != imagenet ] || [ -z "$token" ] || printf 'header = "Authorization: Bearer %s"\n' "$token"
    printf 'url = "%s/%s"\n' "$1" "$2"
  } | curl --config - --silent --fail --location --retry 5 --retry-all-errors --retry-delay 1 --continue-at - \
    --output "$stage/fetched/$2.part" || die "$2: could not be downloaded (curl: $?); resume with --resume" 6
  mv "$stage/fetched/$2.part" "$stage/fetched/$2"
}

imagenet() {
  local name records=$stage/records kind
  for name in "$labels" ILSVRC2012_img_train.tar ILSVRC2012_img_val.tar; do fetch "$IMAGENET_URL" "$name"; done
  dtrain-data imagenet --train_tar "$stage/fetched/ILSVRC2012_img_train.tar" --val_tar \
    "$stage/fetched/ILSVRC2012_img_val.tar" --validation_labels "$stage/fetched/$labels" \
    --output "$records" --shards "$shards"
  dtrain-data verify "$records"
  for kind in train validation; do
    mkdir -p "$stage/tree/$kind"
    ln -f "$records/$kind"-*-of-* "$stage/tree/$kind/"
  done
  ln -f "$records/classes.txt" "$stage/tree/"
  url+=/imagenet
}

coco() {
  local base=${COCO_URL:-http://images.cocodataset.org} name
  [ ${#weights[@]} = 0 ] || stage_weights "${weights[@]}"
  for name in zips/train2017 zips/val2017 annotations/annotations_trainval2017; do
    fetch "$base/${name%/*}" "${name##*/}.zip"
    unzip -q -o "$stage/fetched/${name##*/}.zip" -d "$stage/tree" || die "${name##*/}.zip is damaged: remove it" 2
  done
  dtrain-data coco --input "$stage/tree" --year 2017 --output "$stage/tree/records" --shards "$shards"
  dtrain-data verify "$stage/tree/records"
  url+=/coco2017
}

code() {
  git archive --format=tar --output="$stage/tree/code.tar" HEAD
  url+=/code
}

"$set_name"
write_list "$stage/tree"
upload "$stage/tree" "$url"
compare "$stage/tree" "$url"
