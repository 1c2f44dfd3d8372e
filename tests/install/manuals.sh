#!/usr/bin/env bash
# manuals.sh BUILD_DIR: every program and command has a manual page without warnings of man, and bash completion of
# commands, flags, values and files.
set -euo pipefail
build=$1
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export PATH=$build/bin:$PATH
command -v man >/dev/null || { echo "SKIPPED: no man; on Debian: apt install man-db"; exit 0; }

pages=0
check() {
  local file=$build/man/$1.1.gz warnings
  [ -e "$file" ] || { echo "there is no page $1"; exit 1; }
  warnings=$(LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$file" 2>&1 >"$place/page")
  [ -z "$warnings" ] || { echo "$1: $warnings"; exit 1; }
  for section in NAME SYNOPSIS DESCRIPTION "SEE ALSO"; do
    grep -q "^$section" "$place/page" || { echo "$1 has no $section"; exit 1; }
  done
  pages=$((pages + 1))
}
for program in "$build"/bin/dtrain-*; do
  name=$(basename "$program")
  check "$name"
  while IFS=$'\t' read -r command kind _; do
    if [ "$kind" = command ]; then check "$name-$command"; fi
  done < <("$program" --help=list)
done
check dtrain-mpirun
echo "$pages pages"

# Bash's suggestions after the words of a line; bash treats the equals sign as a separate word.
source "$build/completion.bash"
offers() {
  local answer
  COMP_LINE=$1 COMP_POINT=${#1}
  read -ra COMP_WORDS <<<"${1//=/ = }"
  [[ $1 != *" " && $1 != *"=" ]] || COMP_WORDS+=("")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _dtrain
  answer=$(printf '%s\n' "${COMPREPLY[@]}" | sort | paste -sd ' ')
  [ "$answer" = "$2" ] || { echo "'$1': bash offers '$answer', expected '$2'"; exit 1; }
}
complete -p dtrain-data dtrain-info >/dev/null
mkdir "$place/here"
cd "$place/here"
touch one.tfrecord other
offers "dtrain-data syn" "synthesize"
offers "dtrain-data ver" "verify"
offers "dtrain-data --ver" "--version"
offers "dtrain-data synthesize --max" "--max_image_size"
offers "dtrain-data synthesize --drawing=" "shapes solid"
offers "dtrain-data synthesize --drawing=so" "solid"
offers "dtrain-data synthesize --drawing sh" "shapes"
offers "dtrain-data synthesize --classes=" ""
offers "dtrain-data synthesize --output on" "one.tfrecord"
offers "dtrain-data synthesize --output=oth" "other"
offers "dtrain-data verify o" "one.tfrecord other"
offers "dtrain-data nonsense --x" ""
offers "dtrain-data o" ""
offers "dtrain-classify cal" "calibrate"
offers "dtrain-classify o" "one.tfrecord other"
offers "dtrain-classify other o" "one.tfrecord other"
offers "dtrain-classify --prec" "--precision"
offers "dtrain-classify --precision=" "bf16 fp32 int8"
offers "dtrain-classify calibrate --calib" "--calibration --calibration_split"
offers "dtrain-classify calibrate --calibration_split=t" "train"
offers "dtrain-classify calibrate --data_dir=oth" "other"
offers "dtrain-info --rank" "--ranks"
offers "dtrain-info --norank" "--noranks"
offers "dtrain-info --ranks=" "false true"
offers "dtrain-info --ranks --device=c" "cpu"
COMP_WORDBREAKS=${COMP_WORDBREAKS//=/}
offers "dtrain-info --device=g" "--device=gpu"
echo "completion is as it should be"
