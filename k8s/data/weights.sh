# shellcheck shell=bash
# shellcheck disable=SC2154 # here, stage and work are set by the script that sources this.
# Downloads and checks the weights of weights.txt. Source it in a script that defines `die` and `fetch`.
# shellcheck source=/dev/null
. "$here/../charts/coco-data/files/record.sh"

# weights_row NAME: prints the columns after NAME in weights.txt. Without NAME: prints all names.
weights_row() {
  local name tensors key
  while read -r name tensors key; do
    if [[ -z $name || $name == \#* ]]; then continue; fi
    if [ $# = 0 ]; then echo "$name"; elif [ "$name" = "$1" ]; then echo "$tensors $key"; fi
  done <"$here/weights.txt"
}

# check_tensors FILE backbone|detector KEY=VALUE: the file has all these tensors of the model, in its shapes. Loads them
# as training does.
check_tensors() {
  local name=${1##*/} report wrong
  report=$(dtrain-mask-rcnn convert --from="$1" --to="$work/converted.npz" --preset=tensorpack2019 --config "$3" 2>&1) ||
    die "$name: dtrain-mask-rcnn cannot read it; remove $1 and resume with --resume. ${report##*$'\n'}" 2
  rm -f "$work/converted.npz"
  [[ $report == *"Missing: "*"Other shape: "* ]] || die "$name: unexpected report of dtrain-mask-rcnn: $report" 2
  wrong=$(TENSORS=$2 awk '/^[A-Z]/ { section = $1 }
    /^  / && (section == "Other" || section == "Missing:" && (ENVIRON["TENSORS"] != "backbone" || /^  backbone\.body\./)) {
      sub(/^  /, "")
      print (section == "Other" ? "" : "no ") $0
    }' <<<"$report")
  [ -z "$wrong" ] ||
    die "$name: $(wc -l <<<"$wrong") tensors of the $2 ($3) are missing or have another shape: ${wrong%%$'\n'*}" 2
}

# stage_weights NAME...: downloads weights to $stage/tree/pretrained-models, with their record.
stage_weights() {
  local name row tensors key record=${WEIGHTS_LOCK:-$here/weights.lock} folder=$stage/tree/pretrained-models
  mkdir -p "$folder"
  : >>"$record" || die "$record cannot be written: set WEIGHTS_LOCK" 6
  for name; do
    row=$(weights_row "$name")
    read -r tensors key <<<"$row"
    fetch "${WEIGHTS_URL:-http://models.tensorpack.com/FasterRCNN}" "$name"
    # Recorded files have been checked.
    grep -q "^$name " "$record" || check_tensors "$stage/fetched/$name" "$tensors" "$key"
    match_record "$stage/fetched/$name" "$name" "$record" ||
      die "$name is not staged; remove $stage/fetched/$name to download it again" 2
    ln -f "$stage/fetched/$name" "$folder/$name"
  done
  for name; do grep "^$name " "$record"; done >"$folder/weights.lock"
}
