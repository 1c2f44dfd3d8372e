# Compiles for Debian 11's glibc 2.31 with the host's GCC 12. The environment variable DTRAIN_PORTABLE is the folder
# that sysroot.sh and dependencies.sh filled: sysroot/ and dependencies/. The programs run on the host, so this is no
# cross-compilation.
set(DTRAIN_PORTABLE $ENV{DTRAIN_PORTABLE})
if(NOT EXISTS "${DTRAIN_PORTABLE}/sysroot/usr/include")
  message(FATAL_ERROR "environment variable DTRAIN_PORTABLE: there is no sysroot in the folder '${DTRAIN_PORTABLE}'")
endif()
set(CMAKE_C_COMPILER gcc-12)
set(CMAKE_CXX_COMPILER g++-12)
set(CMAKE_SYSROOT ${DTRAIN_PORTABLE}/sysroot)
set(CMAKE_FIND_ROOT_PATH ${DTRAIN_PORTABLE}/dependencies)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_FLAGS_INIT "-fPIC -ffile-prefix-map=${DTRAIN_PORTABLE}=portable")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
# CUDA: headers and static runtime of the host's toolkit, cuDNN and NCCL included.
set(CMAKE_CUDA_HOST_COMPILER g++-12)
set(CMAKE_CUDA_FLAGS_INIT "-Xcompiler=--sysroot=${CMAKE_SYSROOT},-ffile-prefix-map=${DTRAIN_PORTABLE}=portable")
list(APPEND CMAKE_FIND_ROOT_PATH /usr/local/cuda)
# -B: crt1.o and libraries of the root come before the host's, whose crt1.o leaves constructors to later C libraries.
# Symbols of static dependencies stay private: a user's program may link other versions of them. The runtimes are
# installed to lib/dtrain.
set(flags "--sysroot=${CMAKE_SYSROOT} -B${CMAKE_SYSROOT}/usr/lib/x86_64-linux-gnu")
string(APPEND flags " -L${DTRAIN_PORTABLE}/dependencies/lib")
string(APPEND flags " -Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,--as-needed -Wl,-z,relro,-z,now")
set(CMAKE_EXE_LINKER_FLAGS_INIT "${flags}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${flags} -Wl,-rpath,'\$ORIGIN/dtrain'")
# Dependencies of static libraries: JPEG, Zstandard and WebP of libtiff; in glibc 2.31, pthread, dl and rt are separate.
set(CMAKE_CXX_STANDARD_LIBRARIES "-lm -lpthread -ldl -lrt")
if(EXISTS "${DTRAIN_PORTABLE}/dependencies/lib/libtiff.a")
  string(PREPEND CMAKE_CXX_STANDARD_LIBRARIES "-ljpeg -lzstd -lwebp -lsharpyuv -lz ")
endif()
set(Protobuf_LIBRARY ${DTRAIN_PORTABLE}/dependencies/lib/libprotobuf-lite.a
  CACHE FILEPATH "only the lite runtime is built")
