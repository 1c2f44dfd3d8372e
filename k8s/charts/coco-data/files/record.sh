# shellcheck shell=sh
# Records size and SHA-256 of downloaded files; coco-data.sh and k8s/data/stage.sh use it.

# match_record FILE NAME RECORD: compares FILE with the line `NAME SIZE SHA256` of RECORD, and appends the line if there
# is none. Prints the difference and returns 2 if FILE has another size or checksum.
match_record() {
  found=$(sha256sum <"$1") || return 6
  found="$(($(wc -c <"$1"))) ${found%% *}"
  known=
  if [ -e "$3" ]; then
    while read -r line rest; do [ "$line" != "$2" ] || known=$rest; done <"$3"
  fi
  if [ -z "$known" ]; then
    echo "$2 $found" >>"$3" || return 6
  elif [ "$found" != "$known" ]; then
    echo "$2: size and SHA-256 are $found, but $3 has $known of an earlier download: the publisher replaced the file, or it" \
      "was altered or damaged. To accept this file, remove the line of $2" >&2
    return 2
  fi
}
