#!/usr/bin/env bash
# Makes a CUDA toolkit with cuDNN, NCCL and nvJPEG for builds of releases, from packages of PyPI and Debian:
#     cuda_toolkit.sh 13|12 FOLDER
# Then configure with -DDTRAIN_NVCC=FOLDER/bin/nvcc -DDTRAIN_CUDA_ARCHITECTURES=RELEASE. The libraries are those of the
# images (k8s/images/cuda, cuda12). PyPI has no nvcc 12: nvcc 12.4 and its headers are from Debian 13, section non-free.
# They compile on Debian 12, but not with the C library of Debian 13, whose sinpi and cospi conflict with CUDA's. Needs pip,
# and for CUDA 12 apt.
set -euo pipefail
if [ $# != 2 ] || [[ ! $1 =~ ^1[23]$ ]]; then
  echo "usage: cuda_toolkit.sh 13|12 FOLDER" >&2
  exit 1
fi
here=$(cd "$(dirname "$0")" && pwd)
images=$(cd "$here/../../k8s/images" && pwd)
rm -rf "$2"
mkdir -p "$2"/{bin,include,lib,nvvm}
folder=$(realpath "$2")
ln -s lib "$folder/lib64"
work=$folder/work
mkdir -p "$work/wheels"

requirements=(--requirement "$images/cuda/requirements.txt" --requirement "$work/compiler.txt")
cat >"$work/compiler.txt" <<'END'
nvidia-cuda-cccl==13.0.85 --hash=sha256:e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649
nvidia-cuda-crt==13.0.88 --hash=sha256:2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4
nvidia-cuda-nvcc==13.0.88 --hash=sha256:56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03
nvidia-cuda-runtime==13.0.96 --hash=sha256:7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
nvidia-nvtx==13.0.85 --hash=sha256:4936d1d6780fbe68db454f5e72a42ff64d1fd6397df9f363ae786930fd5c1cd4
nvidia-nvvm==13.0.88 --hash=sha256:c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0
END

# Moves nvcc 12.4, its headers and the libraries of the runtime from Debian's packages to FOLDER.
move_nvcc_12() {
  local apt=$work/apt
  # shellcheck source=scripts/release/debian_source.sh
  . "$here/debian_source.sh"
  mkdir -p "$apt"
  (DEBIAN_COMPONENTS=non-free debian_open "$apt" trixie
    cd "$apt" && apt-get -qq download "nvidia-cuda-toolkit=12.4.*" "nvidia-cuda-dev=12.4.*" "libcudart12=12.4.*")
  dpkg-deb --fsys-tarfile "$apt"/nvidia-cuda-toolkit_*.deb |
    tar x -C "$work" ./usr/bin ./usr/lib/nvidia-cuda-toolkit/{bin,libdevice}
  dpkg-deb --fsys-tarfile "$apt"/nvidia-cuda-dev_*.deb |
    tar x -C "$work" --wildcards './usr/include/*' './usr/lib/*/libcuda'{rt_static,devrt}.a
  dpkg-deb --fsys-tarfile "$apt"/libcudart12_*.deb | tar x -C "$work" --wildcards './usr/lib/*/libcudart.so.*'
  rm "$apt"/*.deb
  local own=$work/usr/lib/nvidia-cuda-toolkit
  rm "$own"/bin/{g++,gcc,nvcc.profile} "$work"/usr/bin/{nvcc,compute-sanitizer}
  mkdir "$folder/nvvm/bin"
  mv "$own/bin/cicc" "$folder/nvvm/bin/"
  mv "$own/libdevice" "$folder/nvvm/"
  mv -t "$folder/bin" "$work"/usr/bin/* "$own"/bin/*
  mv -t "$folder/include" "$work"/usr/include/*
  mv -t "$folder/lib" "$work"/usr/lib/*-linux-gnu/lib*
  # The packages have absolute paths here.
  cat >"$folder/bin/nvcc.profile" <<'END'
TOP = $(_HERE_)/..
CICC_PATH = $(TOP)/nvvm/bin
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH += $(CICC_PATH):$(_HERE_):
INCLUDES += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib"
END
}
if [ "$1" = 12 ]; then
  requirements=(--requirement "$images/cuda12/requirements.txt" --requirement "$work/headers.txt")
  echo "nvidia-cuda-cccl-cu12==12.4.127.post1 --hash=sha256:2027fa5fc75fbee703bf24e8275a40a605cf94a3e8fef8a7187897d49b34facb" >"$work/headers.txt"
  move_nvcc_12
fi

python3 -m pip --quiet --disable-pip-version-check --no-input download --no-deps --require-hashes --only-binary :all: \
  --dest "$work/wheels" "${requirements[@]}"
for wheel in "$work"/wheels/*.whl; do
  python3 -m zipfile -e "$wheel" "$work/unpacked"
  rm "$wheel"
done
for part in "$work"/unpacked/nvidia/*/; do cp -rlf "$part." "$folder/"; done
chmod -R u=rwX,go=rX "$folder"
find "$folder/bin" "$folder/nvvm/bin" -type f -exec chmod 755 {} +
for library in "$folder"/lib/lib*.so.*; do
  ln -sf "${library##*/}" "${library%.so.*}.so"
done
rm -rf "$work"
"$folder/bin/nvcc" --version
