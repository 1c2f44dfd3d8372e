#!/usr/bin/env bash
# Builds the CPU image with the programs of BUILD, and unpacks it: image_build.sh BUILD FOLDER
# FOLDER gets image.tar, layout (the files of image.tar), config.json (the image's configuration) and rootfs (the root file
# system). Files of an earlier run are deleted. It also gets MPICH's packages, which a test of pods unpacks, because
# installing a second MPI would change mpicc and mpirun.
# BUILD may also be the archive of an image, which is unpacked, e.g. for a release's smoke test:
#     image_build.sh dist/dtrain-cuda-VERSION.tar FOLDER && image_test.py FOLDER Containers
set -euo pipefail
build=$1 folder=$2
source=$(cd "$(dirname "$0")/../.." && pwd)
skip() {
  echo "SKIPPED: $1"
  exit 0
}
[ -f "$build" ] || [ -x "$build/bin/dtrain-info" ] || skip "there are no programs in $build: cmake --build --preset ci"
[ -f "$build" ] || [ -e /usr/lib/libnss_extrausers.so.2 ] || skip "there is no libnss-extrausers"
rm -rf "$folder"
mkdir -p "$folder/layout" "$folder/rootfs" "$folder/packages"
if [ -f "$build" ]; then
  for suffix in tar provenance.json; do ln -s "$(realpath "${build%.tar}.$suffix")" "$folder/image.$suffix"; done
else
  (cd "$folder/packages" && apt-get download -qq mpich libslurm38) >/dev/null 2>&1 || true
  DESTDIR=$folder/tree cmake --install "$build" --component programs --strip --prefix /usr >/dev/null
  "$source/k8s/images/build.sh" --prebuilt "$folder/tree" --output "$folder/image.tar" cpu
  rm -rf "$folder/tree"
fi

tar xf "$folder/image.tar" -C "$folder/layout"
python3 - "$folder" <<'PYTHON'
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
[image] = json.loads((folder / "layout/manifest.json").read_text())
config = json.loads((folder / "layout" / image["Config"]).read_text())
(folder / "config.json").write_text(json.dumps(config["config"]))
(folder / "layers.txt").write_text("".join(layer + "\n" for layer in image["Layers"]))
PYTHON
while read -r layer; do
  tar xzf "$folder/layout/$layer" -C "$folder/rootfs" --numeric-owner --same-permissions
done <"$folder/layers.txt"
