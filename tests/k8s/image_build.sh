#!/usr/bin/env bash
# Builds the CPU image with the programs of BUILD, and unpacks it: image_build.sh BUILD FOLDER
# FOLDER gets image.tar, config.json (the image's configuration), layers (files of each layer) and rootfs (all files).
# Files of an earlier run are deleted. It also gets MPICH's packages, which a test of pods unpacks, because installing a
# second MPI would change mpicc and mpirun.
set -euo pipefail
build=$1 folder=$2
source=$(cd "$(dirname "$0")/../.." && pwd)
skip() {
  echo "SKIPPED: $1"
  exit 0
}
[ "$(id -u)" = 0 ] || skip "images are made by root, in namespaces"
for program in buildah skopeo; do command -v $program >/dev/null || skip "there is no $program"; done
[ -x "$build/bin/dtrain-info" ] || skip "there are no programs in $build: cmake --build --preset ci"
[ -e /usr/lib/libnss_extrausers.so.2 ] || skip "there is no libnss-extrausers"

# Neither storage nor mounts outside the folder and this script's own namespaces.
if [ -z "${DTRAIN_INSIDE:-}" ]; then
  rm -rf "$folder"
  mkdir -p "$folder/layers" "$folder/rootfs" "$folder/packages"
  (cd "$folder/packages" && apt-get download -qq mpich libslurm38) >/dev/null 2>&1 || true
  DTRAIN_INSIDE=yes exec unshare --net --mount --propagation private "$0" "$@"
fi
ip link set lo up
umount -l /sys/fs/cgroup/unified 2>/dev/null || true
mount -t tmpfs -o mode=755 tmpfs /run
printf '[storage]\ndriver = "overlay"\nrunroot = "/run/containers"\ngraphroot = "%s"\n' "$folder/storage" >"$folder/storage.conf"
export CONTAINERS_STORAGE_CONF=$folder/storage.conf

DESTDIR=$folder/tree cmake --install "$build" --component programs --strip --prefix /usr >/dev/null
"$source/k8s/images/build.sh" --tool buildah --prebuilt "$folder/tree" --output "$folder/image.tar" cpu
rm -rf "$folder/tree" "$folder/storage"

skopeo inspect --config --raw "docker-archive:$folder/image.tar" >"$folder/image.json"
skopeo copy -q "docker-archive:$folder/image.tar" "dir:$folder/unpacked"
python3 - "$folder" <<'PYTHON'
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
(folder / "config.json").write_text(json.dumps(json.loads((folder / "image.json").read_text())["config"]))
manifest = json.loads((folder / "unpacked/manifest.json").read_text())
(folder / "layers.txt").write_text("".join(layer["digest"].split(":")[1] + "\n" for layer in manifest["layers"]))
PYTHON
while read -r layer; do
  mkdir -p "$folder/layers/$layer"
  tar xf "$folder/unpacked/$layer" -C "$folder/layers/$layer" --numeric-owner --same-permissions
  cp -a "$folder/layers/$layer/." "$folder/rootfs/"
done <"$folder/layers.txt"
rm -rf "$folder/unpacked"
