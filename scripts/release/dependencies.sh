#!/usr/bin/env bash
# dependencies.sh FOLDER [PACKAGE...]: builds the C and C++ libraries that dtrain links, static and
# position-independent, from Debian source packages, the newest of Debian 13 and 12 that the mirror has, in
# FOLDER/dependencies, for the root that sysroot.sh made in FOLDER/sysroot. Headers of header-only libraries come from
# Debian's binary packages. What is built already is kept.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
DTRAIN_PORTABLE=$(cd "$1" && pwd)
export DTRAIN_PORTABLE
prefix=$DTRAIN_PORTABLE/dependencies
# shellcheck source=scripts/release/debian_source.sh
. "$here/debian_source.sh"
apt=$(mktemp -d)
trap 'rm -rf "$apt"' EXIT
debian_open "$apt" trixie bookworm
mkdir -p "$prefix/built" "$prefix/licences"
jobs=$(nproc)
optimisation="-O2 -ffunction-sections -fdata-sections"
flags="--sysroot=$DTRAIN_PORTABLE/sysroot -B$DTRAIN_PORTABLE/sysroot/usr/lib/x86_64-linux-gnu $optimisation -fPIC"
flags+=" -ffile-prefix-map=$DTRAIN_PORTABLE=portable"

with_cmake() {
  cmake -S "$1" -B build.portable -G Ninja -DCMAKE_TOOLCHAIN_FILE="$here/toolchain.cmake" \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR:STRING=lib -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_FLAGS_RELEASE="$optimisation" -DCMAKE_CXX_FLAGS_RELEASE="$optimisation" -DBUILD_SHARED_LIBS=OFF \
    "${@:2}" &&
  ninja -C build.portable -j "$jobs" "${target:-install}"
}
with_configure() {
  [ -x configure ] || autoreconf -fi
  ./configure --prefix="$prefix" --host=x86_64-linux-gnu --disable-shared --enable-static --with-pic \
    CC=gcc-12 CFLAGS="$flags" "$@" &&
  make -j "$jobs" install
}

build_zlib() { CC=gcc-12 CFLAGS="$flags" ./configure --static --prefix="$prefix" && make -j "$jobs" install; }
build_libzstd() { with_cmake build/cmake -DZSTD_BUILD_SHARED=OFF -DZSTD_BUILD_PROGRAMS=OFF; }
build_libjpeg-turbo() { with_cmake . -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DREQUIRE_SIMD=ON; }
build_libpng1.6() { with_cmake . -DPNG_SHARED=OFF -DPNG_TESTS=OFF; }
build_giflib() {
  make libgif.a CC=gcc-12 CFLAGS="$flags -std=gnu99" &&
  install -D -m 644 gif_lib.h "$prefix/include/gif_lib.h" &&
  install -D -m 644 libgif.a "$prefix/lib/libgif.a"
}
build_libwebp() {
  local programs=()
  for program in ANIM_UTILS CWEBP DWEBP GIF2WEBP IMG2WEBP VWEBP WEBPINFO WEBPMUX EXTRAS; do
    programs+=("-DWEBP_BUILD_$program=OFF")
  done
  with_cmake . "${programs[@]}"
}
build_tiff() {
  with_cmake . -Dtiff-tools=OFF -Dtiff-tests=OFF -Dtiff-contrib=OFF -Dtiff-docs=OFF -Dcxx=OFF -Dlibdeflate=OFF \
    -Dlzma=OFF -Djbig=OFF -Dlerc=OFF -Dzstd=ON -Dwebp=ON &&
    [ "$(cat build.portable/libtiff/*.h | grep -cE '^#define (JPEG|ZSTD|WEBP)_SUPPORT 1')" = 3 ]
}
build_libsodium() { with_configure --disable-dependency-tracking; }
build_hwloc() {
  with_configure --localstatedir=/var --disable-libxml2 --disable-io --disable-libudev --disable-cairo --disable-plugins \
    --disable-opencl \
    --disable-cuda --disable-nvml --disable-rsmi --disable-levelzero --disable-gl --disable-pci
}
build_fmtlib() { with_cmake . -DFMT_TEST=OFF -DFMT_DOC=OFF; }
build_protobuf() {
  target=libprotobuf-lite with_cmake . -Dprotobuf_BUILD_TESTS=OFF -Dprotobuf_BUILD_PROTOC_BINARIES=OFF \
    -Dprotobuf_WITH_ZLIB=OFF &&
    cmake --install build.portable --component libprotobuf-lite &&
    cmake --install build.portable --component protobuf-headers
}
build_civetweb() {
  with_cmake . -DCIVETWEB_BUILD_TESTING=OFF -DCIVETWEB_ENABLE_CXX=ON -DCIVETWEB_ENABLE_SSL=OFF \
    -DCIVETWEB_ENABLE_SERVER_EXECUTABLE=OFF -DCIVETWEB_ENABLE_ASAN=OFF
}
build_prometheus-cpp() {
  with_cmake . -DENABLE_TESTING=OFF -DENABLE_PUSH=OFF -DENABLE_COMPRESSION=OFF -DUSE_THIRDPARTY_LIBRARIES=OFF
}
build_onednn() {
  sed -i '/^find_package(spdlog/d; s/ spdlog::[a-z_]*//' src/CMakeLists.txt  # Debian's patch; logging is off below
  with_cmake . -DDNNL_LIBRARY_TYPE=STATIC -DDNNL_BUILD_TESTS=OFF -DDNNL_BUILD_EXAMPLES=OFF -DDNNL_CPU_RUNTIME=OMP \
    -DDNNL_GPU_RUNTIME=NONE -DONEDNN_BUILD_GRAPH=OFF -DDNNL_EXPERIMENTAL_LOGGING=OFF \
    -DDNNL_ENABLE_ITT_TASKS=OFF "-DDNNL_ENABLE_PRIMITIVE=CONVOLUTION;INNER_PRODUCT;MATMUL;REORDER"
}

build() {
  local package=$1 version versions source=$DTRAIN_PORTABLE/source/$1 log=$prefix/built/$1.log
  versions=$(debian_versions "$package")
  ! grep -Fqx "$(cat "$prefix/built/$package" 2>/dev/null)" <<<"$versions" || return 0
  for version in $versions; do
    ! debian_source "$source" "$package" "$version" || break
    echo "$package $version: the mirror lacks this source package" >&2
  done
  echo "$package $version"
  (cd "$source" && "build_$package") >"$log" 2>&1 ||
    { tail -n 20 "$log"; echo "$package $version: the build failed: $log"; exit 1; }
  cp "$source/debian/copyright" "$prefix/licences/$package"
  echo "$version" >"$prefix/built/$package"
  rm -rf "$source"
}

# Header-only libraries. The version of Boost is in the name of its package.
unpack_headers() {
  local boost versions
  boost=$(apt-cache depends libboost-dev | sed -n 's/.*Depends: \(libboost[0-9.]*-dev\)$/\1/p' | head -n 1)
  versions=$(apt-cache policy nlohmann-json3-dev libtomlplusplus-dev "$boost" | grep Candidate)
  [ "$(cat "$prefix/built/headers" 2>/dev/null)" != "$versions" ] || return 0
  debian_unpack "$prefix" nlohmann-json3-dev libtomlplusplus-dev "$boost"
  for package in nlohmann-json3-dev libtomlplusplus-dev "$boost"; do
    cp "$prefix/usr/share/doc/$package/copyright" "$prefix/licences/${package%-dev}"
  done
  echo "$versions" >"$prefix/built/headers"
}

if [ $# -gt 1 ]; then packages=("${@:2}"); else
  packages=(headers zlib libzstd libjpeg-turbo libpng1.6 giflib libwebp tiff libsodium hwloc fmtlib protobuf civetweb
    prometheus-cpp onednn)
fi
for package in "${packages[@]}"; do
  if [ "$package" = headers ]; then unpack_headers; else build "$package"; fi
done
