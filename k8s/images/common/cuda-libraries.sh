#!/usr/bin/env bash
# Downloads the CUDA libraries that the programs load with dlopen, as wheels from PyPI:
#     cuda-libraries.sh REQUIREMENTS FOLDER
# FOLDER gets lib (the libraries), layer.tar (the libraries and their licences, as a layer of an image) and packages (one
# wheel per line: NAME VERSION PURL SHA256). The node provides the driver's libraries. Needs pip, which finds the wheels
# offline with PIP_NO_INDEX=1 and PIP_FIND_LINKS=FOLDER.
set -euo pipefail
requirements=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder/wheels" "$folder/lib"
python3 -m pip --quiet --disable-pip-version-check --no-input download --no-deps --require-hashes --only-binary :all: \
  --dest "$folder/wheels" --requirement "$requirements" ||
  { echo "cuda-libraries.sh: pip cannot download the wheels of $requirements" >&2; exit 6; }

place=usr/lib/$(uname -m)-linux-gnu
mkdir -p "$folder/root/$place"
for wheel in "$folder"/wheels/*.whl; do
  IFS=- read -r name version _ <<<"$(basename "$wheel")"
  name=${name//_/-}
  sum=$(sha256sum "$wheel")
  echo "$name $version pkg:pypi/$name@$version ${sum%% *}" >>"$folder/packages"
  rm -rf "$folder/wheel"
  python3 -m zipfile -e "$wheel" "$folder/wheel"
  rm "$wheel"
  # All sub-libraries of cuDNN, because versions differ in them; but not its attention and recurrent layers
  # (libcudnn_adv). dtrain and cuDNN use cuBLASLt alone. *.alt are NVRTC's variants for other C libraries.
  find "$folder/wheel" -name '*.so.*' -not -name 'libcudnn_adv.*' -not -name 'libcublas.*' -not -name 'libnvblas.*' \
    -not -name '*.alt.so.*' -exec mv -t "$folder/lib" {} +
  mkdir -p "$folder/root/usr/share/doc/$name"
  find "$folder/wheel" -ipath '*.dist-info/*license*' -type f -exec cat {} + >"$folder/root/usr/share/doc/$name/copyright"
done
chmod 644 "$folder"/lib/*
ln "$folder"/lib/* "$folder/root/$place/"
# Without the release's date, so that releases with the same wheels share the layer.
tar -C "$folder/root" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime=@0 \
  --hard-dereference -cf "$folder/layer.tar" .
rm -rf "$folder/root" "$folder/wheel" "$folder/wheels"
