#!/usr/bin/env bash
# portable.sh [--out=FOLDER] [--cache=FOLDER] [--build=FOLDER] [--cuda]: builds programs and library for any x86-64
# Linux with glibc 2.31 or later, and writes the archive dtrain-VERSION-linux-x86_64.tar.gz and the wheel
# dtrain-VERSION-py3-none-manylinux_2_31_x86_64.whl to --out (dist). Runs on Debian 12 or 13; as root it installs the
# build tools that are missing.
#   --cache   compiler root and dependencies, built once: an hour on two cores (~/.cache/dtrain/portable)
#   --build   build tree (build-portable)
#   --cuda    with the CUDA backend, by the nvcc that CMake finds; CUDA libraries are loaded at run time. Without it the
#             artefacts train on CPUs only.
# Two runs on one system give the same bytes: times are SOURCE_DATE_EPOCH, by default the commit's time.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
out=$source/dist cache=${XDG_CACHE_HOME:-$HOME/.cache}/dtrain/portable build=$source/build-portable cuda=OFF
for argument in "$@"; do
  case $argument in
    --out=*) out=${argument#*=} ;;
    --cache=*) cache=${argument#*=} ;;
    --build=*) build=${argument#*=} ;;
    --cuda) cuda=ON ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 1 ;;
  esac
done
mkdir -p "$out" "$cache" "$build"
out=$(cd "$out" && pwd) cache=$(cd "$cache" && pwd) build=$(cd "$build" && pwd)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct)} DTRAIN_PORTABLE=$cache
export LC_ALL=C TZ=UTC

tools=(g++-12 cmake ninja-build make nasm autoconf automake libtool dpkg-dev protobuf-compiler binutils
  python3)
missing=()
for tool in "${tools[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$tool" 2>/dev/null)" = installed ] || missing+=("$tool")
done
if [ ${#missing[@]} != 0 ]; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null
fi

# The compiler root changes with the scripts that make it. Its links and the dependencies contain the path of the cache.
key=$(echo "$cache"; cat "$here/sysroot.sh" "$here/glibc_compat.c" "$here/debian_source.sh" | sha256sum)
if [ "$(cat "$cache/sysroot/key" 2>/dev/null)" != "$key" ]; then
  echo "compiler root: glibc 2.31, GCC 12"
  rm -rf "$cache/dependencies"
  "$here/sysroot.sh" "$cache/sysroot"
  echo "$key" >"$cache/sysroot/key"
fi
"$here/dependencies.sh" "$cache"

prefix_map="-ffile-prefix-map=$source=. -ffile-prefix-map=$build=build -ffile-prefix-map=$cache=portable"
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$here/toolchain.cmake" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_C_FLAGS="$prefix_map" -DCMAKE_CXX_FLAGS="$prefix_map" -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=ON \
  -DDTRAIN_CUDA=$cuda -DDTRAIN_CUDA_ARCHITECTURES=RELEASE -DDTRAIN_TESTS=OFF -DDTRAIN_BENCHMARKS=OFF
LD_LIBRARY_PATH=$cache/sysroot/runtime ninja -C "$build"  # programs print their manual pages

version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
name=dtrain-$version-linux-x86_64
stage=$build/stage/$name
rm -rf "$build/stage"
cmake --install "$build" --prefix "$stage" --strip >/dev/null
install -D -m 644 -t "$stage/lib/dtrain" "$cache"/sysroot/runtime/*
licences=$stage/share/doc/dtrain/licences
mkdir -p "$licences"
cp "$cache"/dependencies/licences/* "$licences/"
cp /usr/share/doc/gcc-12-base/copyright "$licences/libstdc++-libgomp"
chmod -R u=rwX,go=rX "$stage"
"$here/check_symbols.sh" 2.31 "$stage"
"$here/check_paths.sh" "$stage" "$source" "$build" "$cache"/{dependencies,source,sysroot}

tar -C "$build/stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$name" |
  gzip -9n >"$out/$name.tar.gz"  # which every base system unpacks
"$here/make_wheel.py" "$stage" "$version" "$out"
(cd "$out" && sha256sum "$name.tar.gz" "dtrain-$version"-*.whl)
