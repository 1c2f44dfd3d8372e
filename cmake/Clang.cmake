# Toolchain file: Clang 16 or later. Debian 12 has clang++-16 besides its older default.
find_program(DTRAIN_CLANG NAMES clang++-16 clang++ REQUIRED)
set(CMAKE_CXX_COMPILER ${DTRAIN_CLANG})
