#!/usr/bin/env bash
# Installs tools for clusters on AWS, the rows `tool` of k8s/versions.txt, if the SHA-256 of the download matches.
#     k8s/tools/install.sh [--to FOLDER] [TOOL...]
# FOLDER defaults to ~/.local/bin; files of the AWS CLI go to its subfolder aws-cli. TOOL is kubectl, helm, terraform,
# eksctl or aws (default: all). Tools that were installed from the same download are skipped. $DTRAIN_TOOLS_MIRROR, such
# as https://mirror.example/tools, replaces `https://` in all URLs. Needs curl, flock, tar, sha256sum and unzip on Linux
# x86-64.
# Exit codes: 0 done, 1 usage, 4 a download failed, 5 a download has another SHA-256, 6 a tool is missing or a file
# cannot be written. A failure keeps the previous version, except for code 6 of aws, whose installer writes in steps.
set -euo pipefail
umask 022
unset CDPATH TAR_OPTIONS UNZIP UNZIPOPT  # of tar and unzip, which would take more options from them
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() {
  echo "install.sh: $2" >&2
  exit "$1"
}
folder=$HOME/.local/bin
if [ "${1:-}" = --to ]; then
  [ $# -ge 2 ] || die 1 "--to needs a folder"
  folder=$2
  shift 2
fi
rows=()
while read -r kind row; do
  [ "$kind" != tool ] || rows+=("$row")
done <"$here/../versions.txt"
[ ${#rows[@]} -gt 0 ] || die 6 "$here/../versions.txt lists no tools"
names=("${rows[@]%% *}")
for name in "$@"; do
  [[ " ${names[*]} " == *" $name "* ]] || die 1 "unknown tool '$name', expected one of ${names[*]}: k8s/tools/install.sh [--to FOLDER] [TOOL...]"
done
[ "$(uname -sm)" = "Linux x86_64" ] || die 6 "versions.txt lists tools for Linux on x86-64, and this is $(uname -sm)"
for program in curl flock tar sha256sum unzip; do
  command -v "$program" >/dev/null || die 6 "$program is not installed"
done
case $folder in
  /*) ;;
  *) folder=$PWD/$folder ;;
esac
mkdir -p "$folder" || die 6 "$folder cannot be created"
folder=$(cd "$folder" && pwd && echo x) || die 6 "$folder cannot be entered"
folder=${folder%$'\n'x}
[ -w "$folder" ] || die 6 "$folder cannot be written"
# A lock allows one installation at a time, which removes leftovers of a killed one.
exec {lock}<"$folder"
flock --nonblock "$lock" || { echo "waiting for another installation into $folder" && flock "$lock"; } ||
  die 6 "$folder cannot be locked"
rm -rf "$folder"/.install.??????
# On the same file system, so that the last step is a rename.
work=$(mktemp -d "$folder/.install.XXXXXX") || die 6 "$folder cannot be written"
trap 'rm -rf "$work"' EXIT

# The digest of a tool's download is stored beside it.
installed() {  # NAME SHA256
  [ -f "$folder/$1" ] && [ -x "$folder/$1" ] && [ "$(cat "$folder/.$1.sha256" 2>/dev/null)" = "$2" ]
}
place() {  # NAME: makes $work/new the tool
  { chmod 755 "$work/new" && mv -fT "$work/new" "$folder/$1"; } || die 6 "$folder/$1 cannot be written"
}
place_aws() {  # its own installer copies into a folder of the version, and links to it
  unzip -q "$work/download" -d "$work/unpacked" || die 6 "the download of the AWS CLI cannot be unpacked"
  "$work/unpacked/aws/install" --update --install-dir "$folder/aws-cli" --bin-dir "$folder" >/dev/null ||
    die 6 "the installer of the AWS CLI failed"
}
install_one() {  # NAME VERSION SHA256 ADDRESS
  local name=$1 version=$2 expected=$3 address=$4 found
  if installed "$name" "$expected"; then
    echo "$name $version: installed already"
    return
  fi
  [ "$name" != aws ] || [ ! -L "$folder/aws-cli" ] || die 6 "$folder/aws-cli is a link, expected a folder"
  [ -z "${DTRAIN_TOOLS_MIRROR:-}" ] || address=${DTRAIN_TOOLS_MIRROR%/}/${address#https://}
  curl --fail --silent --show-error --location --retry 3 --connect-timeout 20 --speed-limit 1000 --speed-time 60 \
    --max-filesize 1000000000 --globoff --output "$work/download" --url "$address" || die 4 "$address could not be fetched"
  found=$(sha256sum <"$work/download")
  found=${found%% *}
  [ "$found" = "$expected" ] || die 5 "$address has the SHA-256 $found, not $expected: $name is not installed"
  case $name in
    aws) ;;
    kubectl) mv "$work/download" "$work/new" ;;
    helm) tar -xzOf "$work/download" linux-amd64/helm >"$work/new" ;;
    eksctl) tar -xzOf "$work/download" eksctl >"$work/new" ;;
    terraform) unzip -p "$work/download" terraform >"$work/new" ;;
  esac || die 6 "$address cannot be unpacked: $name is not installed"
  if [ "$name" != aws ] && ! [ -s "$work/new" ]; then die 6 "$address contains no $name: it is not installed"; fi
  # Written last: no digest exists while the tool is replaced.
  { echo "$expected" >"$work/digest" && rm -f "$folder/.$name.sha256"; } || die 6 "$folder cannot be written"
  if [ "$name" = aws ]; then place_aws; else place "$name"; fi
  mv -fT "$work/digest" "$folder/.$name.sha256" || die 6 "$folder cannot be written"
  echo "$name $version: installed in $folder"
}
for row in "${rows[@]}"; do
  read -r name version _ address expected <<<"$row"
  if [ $# = 0 ] || [[ " $* " == *" $name "* ]]; then install_one "$name" "$version" "$expected" "$address"; fi
done
case :$PATH: in
  *":$folder:"*) ;;
  *) echo "$folder is not in PATH yet: export PATH=$(printf %q "$folder"):\$PATH" ;;
esac
