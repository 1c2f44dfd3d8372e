# shellcheck shell=bash
# shellcheck disable=SC2154 # self and work are set by the script that sources this.
# Functions that stage.sh and save-results.sh share: to be sourced, by a script that has set `self`.
# A tree goes to S3 with a list of its files beside it, SHA256SUMS, and is compared with that list by reading it back.
# The AWS CLI finds credentials by itself, in its environment or its files; nothing here names or prints them.
die() {
  echo "$self: $1" >&2
  exit "${2:-1}"
}

# s3_url BUCKET[/PREFIX]: its s3:// address, without a slash at the end.
s3_url() {
  local path=${1#s3://}
  path=${path%/}
  [[ $path =~ ^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._/=-]+)?$ ]] ||
    die "$1 is not BUCKET or BUCKET/PREFIX"
  echo "s3://$path"
}

# write_list FOLDER: FOLDER/SHA256SUMS, of all of its files.
write_list() {
  (
    cd "$1" || exit
    # shellcheck disable=SC2094 # the list that is written is not among the files that are read
    find . -type f ! -name SHA256SUMS ! -name SHA256SUMS.new -printf '%P\0' | LC_ALL=C sort -z |
      xargs -0 -r sha256sum -- >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS
  )
}

# upload FOLDER URL: what is missing or of another size is sent; a call that was killed goes on where it was.
upload() {
  local attempt
  for attempt in 1 2 3; do
    aws s3 sync --only-show-errors --size-only --no-follow-symlinks "$1" "$2" --exclude SHA256SUMS && break
    [ "$attempt" -lt 3 ] || die "$2: the upload failed three times; run the same command again to go on" 6
    sleep "${DTRAIN_RETRY_SECONDS:-5}"
  done
  aws s3 cp --only-show-errors "$1/SHA256SUMS" "$2/SHA256SUMS" || die "$2/SHA256SUMS: could not be uploaded" 6
}

# differing FOLDER: of the lines that are its input, the names of the files in FOLDER whose checksums are others.
differing() {
  (cd "$1" && sha256sum --check --quiet 2>/dev/null) | sed -n 's/: FAILED.*$//p'
}

# compare FOLDER URL: counts and sizes as S3 lists them, and the checksum of each file, read back a folder at a time into
# $work, which has to have room for the largest. A file that differs is sent once more, since an upload looks at sizes
# alone.
compare() {
  local folder=$1 url=$2 part name bad=0 count
  while IFS= read -r part; do
    mkdir -p "$work/back/$part"
    if [ -d "$folder/$part" ]; then
      aws s3 cp --recursive --only-show-errors "$url/$part" "$work/back/$part" || true
    else
      rmdir "$work/back/$part"
      aws s3 cp --only-show-errors "$url/$part" "$work/back/$part" || true
    fi
    part_sums "$folder" "$part" >"$work/sums"
    while IFS= read -r name; do
      aws s3 cp --only-show-errors "$folder/$name" "$url/$name" || true
      aws s3 cp --only-show-errors "$url/$name" "$work/back/$name" || true
    done < <(differing "$work/back" <"$work/sums")
    while IFS= read -r name; do
      echo "$self: $url/$name differs from $folder/$name" >&2
      bad=$((bad + 1))
    done < <(differing "$work/back" <"$work/sums")
    rm -rf "$work/back"
  done < <(find "$folder" -mindepth 1 -maxdepth 1 ! -name 'SHA256SUMS*' -printf '%f\n' | LC_ALL=C sort)
  count=$(wc -l <"$folder/SHA256SUMS")
  [ "$bad" -eq 0 ] || die "$url: $bad of $count files differ; run the same command again" 2
  local bytes listed
  bytes=$(find "$folder" -type f -printf '%s\n' | awk '{n++; s += $1} END {print n + 0, s + 0}')
  aws s3 ls --recursive "$url/" >"$work/listed" || die "$url: could not be listed" 6
  listed=$(awk '{n++; s += $3} END {print n + 0, s + 0}' "$work/listed")
  [ "$bytes" = "$listed" ] || die "$url holds $listed files and bytes, $folder $bytes: remove what is not of it" 2
  echo "$url: $count files, their sizes and checksums are those of $folder"
}

# part_sums FOLDER PART: the lines of the list for a file, or for all files of a folder.
part_sums() {
  PART=$2 awk '{name = substr($0, 67)} name == ENVIRON["PART"] || index(name, ENVIRON["PART"] "/") == 1' "$1/SHA256SUMS"
}
