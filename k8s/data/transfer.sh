# shellcheck shell=bash
# shellcheck disable=SC2154 # self and work are set by the script that sources this.
# Functions of stage.sh and save-results.sh. Source it in a script that sets `self`.
# Uploads a tree to S3 with a list of checksums, SHA256SUMS, and verifies it by reading it back. The list is created in
# $work, so that the tree may be read-only.
# The AWS CLI finds credentials in its environment or its files; nothing here reads or prints them.
die() {
  echo "$self: $1" >&2
  exit "${2:-1}"
}

# s3_url BUCKET[/PREFIX]: prints its s3:// URL without a trailing slash.
s3_url() {
  local path=${1#s3://}
  path=${path%/}
  [[ $path =~ ^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._/=-]+)?$ ]] ||
    die "$1 is not BUCKET or BUCKET/PREFIX"
  echo "s3://$path"
}

# write_list FOLDER: writes $work/SHA256SUMS of all files in the folder. Rejects names that sha256sum would escape.
write_list() {
  local strange
  [ ! -e "$1/SHA256SUMS" ] || die "$1/SHA256SUMS: this name is reserved for the list of checksums: rename or remove the file" 2
  strange=$(find "$1" -name '*[\\[:cntrl:]]*' -print -quit)
  [ -z "$strange" ] || die "$(printf %q "$strange"): names with a backslash or a control character cannot be saved" 2
  (cd "$1" && find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 -r sha256sum --) >"$work/SHA256SUMS" ||
    die "$1: not all of its files could be read" 6
}

# upload FOLDER URL: uploads files that are missing or have another size; resumes after a kill.
upload() {
  local attempt
  for attempt in 1 2 3; do
    aws s3 sync --only-show-errors --size-only --no-follow-symlinks "$1" "$2" && break
    [ "$attempt" -lt 3 ] || die "$2: the upload failed three times; run the same command again to resume" 6
    sleep "${DTRAIN_RETRY_SECONDS:-5}"
  done
  aws s3 cp --only-show-errors "$work/SHA256SUMS" "$2/SHA256SUMS" || die "$2/SHA256SUMS: could not be uploaded" 6
}

# parts FOLDER: lists the parts that are read back at a time: an empty line (everything) for a tree of up to 1 GB, else
# each entry of the top folder.
parts() {
  if [ "$(total "$1" | cut -d ' ' -f 2)" -le 1000000000 ]; then echo; else
    find "$1" -mindepth 1 -maxdepth 1 -printf '%f\n' | LC_ALL=C sort
  fi
}

# total PATH...: prints number and total bytes of all files in the paths.
total() {
  find "$@" -type f -printf '%s\n' | awk '{n++; s += $1} END {printf "%d %.0f\n", n, s}'
}

# differing FOLDER: reads lines of SHA256SUMS and prints the names of files in FOLDER with other checksums.
differing() {
  (cd "$1" && sha256sum --check --quiet 2>/dev/null) | sed -n 's/: FAILED.*$//p'
}

# compare FOLDER URL: verifies counts and sizes as listed by S3, and the checksum of each file. Reads back one part at a
# time into $work, which needs space for the largest part. Uploads differing files once more, since `upload` compares
# sizes only.
compare() {
  local folder=$1 url=$2 part name bad=0 count expected listed
  aws s3 ls --recursive "$url/" >"$work/listed" || die "$url: could not be listed" 6
  listed=$(awk '{n++; s += $3} END {printf "%d %.0f\n", n, s}' "$work/listed")
  expected=$(total "$folder" "$work/SHA256SUMS")
  [ "$expected" = "$listed" ] ||
    die "$url holds $listed files and bytes, $folder with SHA256SUMS $expected: remove foreign objects" 2
  while IFS= read -r part; do
    mkdir -p "$work/back/$part"
    if [ -d "$folder/$part" ]; then
      aws s3 cp --recursive --only-show-errors "$url${part:+/$part}" "$work/back/$part" || true
    else
      rmdir "$work/back/$part"
      aws s3 cp --only-show-errors "$url/$part" "$work/back/$part" || true
    fi
    part_sums "$part" >"$work/sums"
    while IFS= read -r name; do
      aws s3 cp --only-show-errors "$folder/$name" "$url/$name" || true
      aws s3 cp --only-show-errors "$url/$name" "$work/back/$name" || true
    done < <(differing "$work/back" <"$work/sums")
    while IFS= read -r name; do
      echo "$self: $url/$name differs from $folder/$name" >&2
      bad=$((bad + 1))
    done < <(differing "$work/back" <"$work/sums")
    rm -rf "$work/back"
  done < <(parts "$folder")
  count=$(wc -l <"$work/SHA256SUMS")
  [ "$bad" -eq 0 ] || die "$url: $bad of $count files differ; run the same command again" 2
  echo "$url: $count files with the sizes and checksums of $folder"
}

# part_sums PART: prints the lines of SHA256SUMS for a file, or for all files of a folder.
part_sums() {
  PART=$1 awk '{name = substr($0, 67); part = ENVIRON["PART"]}
    part == "" || name == part || index(name, part "/") == 1' "$work/SHA256SUMS"
}
