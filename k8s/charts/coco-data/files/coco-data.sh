#!/bin/sh
# Downloads ARCHIVES from COCO_URL and WEIGHTS from WEIGHTS_URL to DATA_DIR, and unpacks the archives. Idempotent: skips
# complete files, and resumes partial downloads if the server supports ranges. Weights must have the size and SHA-256 of
# their first download, which pretrained-models/weights.lock records. The chart puts record.sh in front of this script.
# Exit codes: 0 done, 2 damaged or altered weights, else curl's or unzip's.
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
  file=$DATA_DIR/pretrained-models/$name
  if [ -e "$file.rejected" ]; then
    echo "$file.rejected differs from the recorded download: remove it to download $name again" >&2
    exit 2
  fi
  if [ ! -e "$file" ]; then
    fetch "$WEIGHTS_URL/$name" "$file.new"
    if ! unzip -p "$file.new" >/dev/null; then  # reads all arrays and their checksums
      rm "$file.new"
      echo "$WEIGHTS_URL/$name: expected an .npz file, got another or a damaged one" >&2
      exit 2
    fi
    match_record "$file.new" "$name" "$DATA_DIR/pretrained-models/weights.lock" || {
      mv "$file.new" "$file.rejected"
      exit 2
    }
    mv "$file.new" "$file"
  fi
  match_record "$file" "$name" "$DATA_DIR/pretrained-models/weights.lock"
done
echo "$DATA_DIR is complete"
