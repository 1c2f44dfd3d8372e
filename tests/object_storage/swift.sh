#!/usr/bin/env bash
# Downloads OpenStack Swift and what it needs from the Debian release of this machine, without installing it.
#     tests/object_storage/swift.sh
# Prints the folder, ~/.cache/dtrain/swift, for swift_server.py. What is there is not downloaded again.
# Exit codes: 0 Swift is there, 77 the download failed.
set -euo pipefail
folder=${XDG_CACHE_HOME:-$HOME/.cache}/dtrain/swift
packages='python3-swift python3-cffi-backend python3-eventlet python3-greenlet python3-lxml python3-netifaces
python3-pastedeploy python3-pkg-resources python3-pyeclib python3-six python3-xattr'
# shellcheck source=/dev/null
pins="$(. /etc/os-release && echo "$ID $VERSION_ID") $packages"
skip() {
  echo "SKIPPED: there is no Swift, and it could not be fetched: $*"
  exit 77
}

if [ "$(cat "$folder/pins" 2>/dev/null)" != "$pins" ]; then
  mkdir -p "$(dirname "$folder")"
  exec 9>"$folder.lock"
  flock 9
fi
if [ "$(cat "$folder/pins" 2>/dev/null)" != "$pins" ]; then
  rm -rf "$folder"
  mkdir -p "$folder"/{apt/lists/partial,packages}
  # Own lists: those of the machine may be missing, or older than its mirror.
  apt=(-qq -o "Dir::State::lists=$folder/apt/lists" -o "Dir::Cache=$folder/apt" -o Debug::NoLocking=1)
  apt-get "${apt[@]}" update >"$folder/log" 2>&1 || skip "apt-get update: $(grep -m 1 '^E:' "$folder/log")"
  # Debian releases name this library differently.
  library=$(apt-cache "${apt[@]}" depends python3-pyeclib | sed -n 's/.*\(liberasurecode[a-z0-9]*\)$/\1/p')
  read -r -d '' -a names <<<"$packages $library" || true
  (cd "$folder/packages" && apt-get "${apt[@]}" download "${names[@]}") >"$folder/log" 2>&1 ||
    skip "apt-get download: $(grep -m 1 '^E:' "$folder/log")"
  for package in "$folder"/packages/*.deb; do dpkg-deb -x "$package" "$folder"; done
  rm -r "$folder"/{apt,packages,log}
  printf '%s\n' "$pins" >"$folder/pins"
fi
echo "$folder"
