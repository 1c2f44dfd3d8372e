#!/usr/bin/env bash
# Installs dtrain on a host from the files of a release. cluster.yaml runs it at boot as /efs/packages/install.sh.
#     sudo k8s/ec2/install.sh [FOLDER]
# FOLDER (default: the script's) holds one version of a release, with SHA256SUMS if the files are to be verified:
#   libdtrain0_*~deb13u1_amd64.deb, dtrain_*~deb13u1_amd64.deb   for Debian 13; deb12u1 for Debian 12
#   dtrain-VERSION-linux-x86_64.tar.gz                           for others, such as Ubuntu of the Deep Learning AMI
#   dtrain-VERSION-*.whl                                         optional, for CUDA libraries that a host lacks
# Debian's packages are installed by apt, the archive in /opt with links in /usr/local/bin. On a host with a GPU,
# `dtrain-info --selftest` must pass, for which the release must have been made with CUDA. If a CUDA library cannot be
# loaded, pip installs those of the wheel's extra cuda13 in /opt/dtrain-cuda.
# Exit codes: 0 installed; 1 usage, or no file for this host; 2 a file is damaged; 5 apt or pip failed; 6 not root, or
# a full disk; 7 a GPU cannot be used.
set -euo pipefail
die() {
  echo "install.sh: $2" >&2
  exit "$1"
}
[ $# -le 1 ] || die 1 "usage: k8s/ec2/install.sh [FOLDER]"
folder=$(realpath -m "${1:-$(dirname "${BASH_SOURCE[0]}")}")
[ -d "$folder" ] || die 1 "$folder is not a folder"
[ "$(id -u)" = 0 ] || die 6 "needs root: sudo $0"
shopt -s nullglob
libraries=/opt/dtrain-cuda
system=$(. /etc/os-release && echo "$ID $VERSION_ID" "${PRETTY_NAME:-$ID}")
read -r id release system <<<"$system"

archives=("$folder"/dtrain-*-linux-x86_64.tar.gz)
packages=()
if [ "$id" = debian ]; then
  packages=("$folder"/{libdtrain0,dtrain}_*"~deb${release%%.*}u"*_amd64.deb)
fi
if [ ${#packages[@]} = 2 ]; then
  files=("${packages[@]}")
elif [ ${#packages[@]} != 0 ]; then
  die 1 "$folder: expected libdtrain0 and dtrain of one version for Debian ${release%%.*}, found ${packages[*]##*/}"
elif [ ${#archives[@]} = 1 ]; then
  files=("${archives[@]}")
else
  [ ${#archives[@]} = 0 ] || die 1 "$folder: expected one archive, found ${archives[*]##*/}"
  die 1 "$folder has neither packages for $system nor the archive dtrain-VERSION-linux-x86_64.tar.gz"
fi

# Files that SHA256SUMS does not list are not verified.
if [ -e "$folder/SHA256SUMS" ]; then
  for file in "${files[@]}"; do
    sum=$(awk -v name="${file##*/}" '{ sub(/^\*/, "", $2) } $2 == name { print $1 }' "$folder/SHA256SUMS")
    [ -z "$sum" ] || sha256sum --status --check <<<"$sum  $file" ||
      die 2 "$file is damaged: SHA256SUMS has another digest"
  done
fi

if [ ${#packages[@]} = 2 ]; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${packages[@]}" openmpi-bin ||
    die 5 "apt could not install ${packages[*]##*/}"
else
  name=$(basename "${archives[0]}" .tar.gz)
  new=/opt/.$name.new
  rm -rf "$new"
  mkdir -p "$new" /usr/local/bin
  tar xzf "${archives[0]}" --no-same-owner -C "$new" ||
    die 2 "${archives[0]} cannot be unpacked: it is damaged, or /opt is full"
  [ -x "$new/$name/bin/dtrain-info" ] || die 2 "${archives[0]} has no $name/bin/dtrain-info"
  rm -rf "/opt/$name"
  mv "$new/$name" "/opt/$name"
  rmdir "$new"
  ln -sfn "/opt/$name/bin"/dtrain-* /usr/local/bin/
fi
PATH=$PATH:/usr/local/bin
dtrain-info >/dev/null || die 1 "dtrain-info does not run on $system"
# Sets `found`, the output of a test of the GPUs, drivers and libraries.
test_gpus() { found=$(dtrain-info --selftest --device=gpu 2>&1); }
if command -v nvidia-smi >/dev/null && nvidia-smi --list-gpus 2>/dev/null | grep -q . && ! test_gpus; then
  wheels=("$folder"/dtrain-*.whl)
  if [[ $found == *"cannot be loaded"* && ${#wheels[@]} = 1 ]]; then
    # The programs stay those of the archive or the packages; the loader finds the libraries.
    { apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends python3-venv &&
      python3 -m venv "$libraries" && "$libraries/bin/pip" install --quiet "${wheels[0]}[cuda13]"; } ||
      die 5 "pip could not install NVIDIA's libraries for ${wheels[0]##*/}"
    printf '%s\n' "$libraries"/lib/python3*/site-packages/nvidia/*/lib >/etc/ld.so.conf.d/dtrain-cuda.conf
    ldconfig
  fi
  test_gpus || die 7 "the GPU cannot be used: $(tail -n 1 <<<"$found"). Needs a release made with CUDA (not by \
release.sh --cpu) and the libraries of its CUDA version: add the wheel of the release to $folder"
fi
echo "install.sh: ${files[*]##*/} on $system"
