#!/bin/sh
# Downloads ARCHIVES from COCO_URL and WEIGHTS from WEIGHTS_URL to DATA_DIR, and unpacks the archives. Idempotent: skips
# complete files, and resumes partial downloads if the server supports ranges.
set -euf
fetched=$DATA_DIR/.fetched
mkdir -p "$fetched" "$DATA_DIR/pretrained-models"

get() {  # URL FILE
  curl --globoff --fail --silent --show-error --location --retry 8 --retry-delay 5 --continue-at - --output "$2" "$1"
}

fetch() {  # URL FILE
  [ ! -e "$2" ] || return 0
  echo "$1"
  code=0
  get "$1" "$2.part" || code=$?
  if [ $code = 33 ]; then  # the server does not support ranges
    rm "$2.part"
    code=0
    get "$1" "$2.part" || code=$?
  fi
  [ $code = 0 ] || exit $code
  mv "$2.part" "$2"
}

for archive in $ARCHIVES; do
  name=${archive##*/}
  [ ! -e "$fetched/$name.done" ] || continue
  fetch "$COCO_URL/$archive" "$fetched/$name"
  unzip -q -o "$fetched/$name" -d "$DATA_DIR"
  : >"$fetched/$name.done"
  rm "$fetched/$name"
done
for name in $WEIGHTS; do
  fetch "$WEIGHTS_URL/$name" "$DATA_DIR/pretrained-models/$name"
done
echo "$DATA_DIR is complete"
