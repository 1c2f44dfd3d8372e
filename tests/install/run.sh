#!/usr/bin/env bash
# run.sh BUILD_DIR COMPILER: installs the build tree to a temporary prefix, then builds and runs the project in
# consumer/ against it with find_package and with pkg-config. The prefix is moved first, to check that it does not
# depend on the build tree. The consumer needs no OpenMP flags.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$1
export CXX=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

cmake --install "$build" --prefix "$place/installed" >/dev/null
mv "$place/installed" "$place/prefix"
cp -r "$here/consumer" "$place/consumer"
cd "$place/consumer"

echo "By find_package:"
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$place/prefix" \
  -DCMAKE_DISABLE_FIND_PACKAGE_OpenMP=ON >/dev/null
cmake --build build -- --quiet
build/consumer

echo "By pkg-config:"
PKG_CONFIG_PATH=$(dirname "$(find "$place/prefix" -name dtrain.pc)")
export PKG_CONFIG_PATH
case $(pkg-config --cflags --libs dtrain) in
  *-fopenmp*) echo "pkg-config asks for -fopenmp, which not every compiler has" && exit 1 ;;
esac
for linking in "" --static; do
  "$CXX" -O2 -Wall -Wextra -Wpedantic -Wshadow -Werror main.cpp $(pkg-config $linking --cflags --libs dtrain) -o "with$linking"
  LD_LIBRARY_PATH=$(pkg-config --variable=libdir dtrain) "./with$linking"
done

for program in "$place"/prefix/bin/*; do
  [ -e "$program" ] || continue
  echo "Installed program: $("$program" --version)"
done
