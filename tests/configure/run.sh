#!/usr/bin/env bash
# run.sh SOURCE_DIR: tests the CMake configuration with an nvcc that does not support C++20. DTRAIN_CUDA=AUTO prints the
# reason in the summary, ON fails with the reason, which names the architectures of a release. Also tests ccache: a new
# build tree uses it; a tree that was configured without it stays without, because the change would rebuild everything.
set -euo pipefail
source=$1
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cat >"$place/nvcc" <<'NVCC'
#!/bin/sh
if [ "$1" = --version ]; then echo "Cuda compilation tools, release 12.4, V12.4.131" && exit; fi
echo "nvcc fatal   : Value 'c++20' is not defined for option 'std'" >&2
exit 1
NVCC
chmod +x "$place/nvcc"

configure() {
  cmake -S "$source" -B "$place/$1" -G Ninja -DDTRAIN_TESTS=OFF -DDTRAIN_BENCHMARKS=OFF -DDTRAIN_CUDA="$1" \
    -DDTRAIN_NVCC="$place/nvcc" -DDTRAIN_CUDA_ARCHITECTURES="$2" 2>&1
}
expect() {
  tr -s '[:space:]' ' ' <"$place/$1.log" | grep -F "$2" >/dev/null || { echo "DTRAIN_CUDA=$1: no \"$2\" in:" && cat "$place/$1.log" && exit 1; }
}
reason="nvcc fatal : Value 'c++20' is not defined"
configure AUTO "80-real;90-virtual" >"$place/AUTO.log" || { cat "$place/AUTO.log" && exit 1; }
expect AUTO "off: $place/nvcc cannot compile C++20 for 80-real 90-virtual: $reason"
! configure ON RELEASE >"$place/ON.log" || { echo "DTRAIN_CUDA=ON: configured, expected an error" && exit 1; }
expect ON "$place/nvcc cannot compile C++20 for 70-real 75-real 80-real 86-real 89-real 90a-real 90-virtual: $reason"

printf '#!/bin/sh\nexec "$@"\n' >"$place/ccache"
beside_ccache() {
  PATH=$place:$PATH cmake -S "$source" -B "$place/$1" -G Ninja -DDTRAIN_TESTS=OFF -DDTRAIN_BENCHMARKS=OFF -DDTRAIN_CUDA=OFF "${@:2}" \
    >"$place/$1.log" 2>&1 || { cat "$place/$1.log" && exit 1; }
}
launches_ccache() { grep "$place/ccache" "$place/$1/build.ninja" "$place/$1/CMakeFiles/rules.ninja" >/dev/null; }
compilers=(-DCMAKE_CXX_COMPILER="$(command -v c++)" -DCMAKE_MAKE_PROGRAM="$(command -v ninja)"
  -DProtobuf_PROTOC_EXECUTABLE="$(command -v protoc)")
beside_ccache without "${compilers[@]}" -DCMAKE_IGNORE_PATH="$place;/usr/local/bin;/usr/bin;/bin"
chmod +x "$place/ccache"
beside_ccache without -DCMAKE_IGNORE_PATH=
! launches_ccache without || { echo "an existing build tree switched to ccache" && exit 1; }
beside_ccache with
launches_ccache with || { echo "a new build tree does not use ccache" && exit 1; }
