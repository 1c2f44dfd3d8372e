#!/usr/bin/env bash
# Compiles the programs of an image, which share the engine's libraries, into the folder /tree; the arguments are
# CMake's.
set -euo pipefail
cd "$(dirname "$0")/../../.."
cmake -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON -DDTRAIN_MPI=ON -DDTRAIN_TESTS=OFF -DDTRAIN_BENCHMARKS=OFF "$@"
cmake --build /build --target programs
DESTDIR=/tree cmake --install /build --component programs --strip --prefix /usr
