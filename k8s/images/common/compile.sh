#!/usr/bin/env bash
# Builds the programs of an image with shared libraries and installs them to /tree. Arguments are passed to CMake.
set -euo pipefail
cd "$(dirname "$0")/../../.."
cmake -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DDTRAIN_TESTS=OFF -DDTRAIN_BENCHMARKS=OFF "$@"
cmake --build /build --target programs
DESTDIR=/tree cmake --install /build --component programs --strip --prefix /usr
