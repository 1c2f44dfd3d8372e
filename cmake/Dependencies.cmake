# Every find_package of the project. Versions are Debian 12's, the oldest.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(Threads REQUIRED)
# Debian's dnnl-config.cmake requires OpenCL, which the library does not need, so oneDNN is searched by name.
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_path(DNNL_INCLUDE_DIR dnnl.hpp REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(GIF REQUIRED)
find_package(TIFF 4.5 REQUIRED)
find_library(WEBP_LIBRARY webp REQUIRED)  # has no CMake package
find_library(WEBPDEMUX_LIBRARY webpdemux REQUIRED)
find_path(WEBP_INCLUDE_DIR webp/demux.h REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Protobuf 3.21 REQUIRED)  # lite runtime and protoc
find_package(prometheus-cpp REQUIRED)  # 1.0; its CMake package states no version
find_package(Boost 1.74 CONFIG REQUIRED)  # headers only: Asio and Beast for the server, PropertyTree for XML
find_library(SODIUM_LIBRARY sodium REQUIRED)  # has no CMake package
find_path(SODIUM_INCLUDE_DIR sodium.h REQUIRED)
find_library(HWLOC_LIBRARY hwloc REQUIRED)  # has no CMake package
find_path(HWLOC_INCLUDE_DIR hwloc.h REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)  # 3.3, header-only; has no CMake package

# Tests and benchmarks under mpirun. The engine itself loads Open MPI at run time.
if(DTRAIN_TESTS OR DTRAIN_BENCHMARKS)
  set(MPI_CXX_SKIP_MPICXX ON)  # without MPI's removed C++ bindings
  find_package(MPI 3.1 QUIET COMPONENTS CXX)
endif()
dtrain_resolve(MPI "${MPI_CXX_FOUND}" "MPI ${MPI_CXX_VERSION}, ${MPIEXEC_EXECUTABLE}" "no MPI found")

find_package(GTest 1.12 QUIET)
find_package(Eigen3 3.4 QUIET NO_MODULE)  # reference results in double precision
if(GTest_FOUND AND Eigen3_FOUND)
  set(tests_found TRUE)
endif()
dtrain_resolve(TESTS "${tests_found}" "GoogleTest ${GTest_VERSION}, Eigen ${Eigen3_VERSION}"
  "GoogleTest or Eigen not found")
find_package(Doxygen 1.9 QUIET)  # the API reference
find_package(benchmark 1.7 QUIET)
dtrain_resolve(BENCHMARKS "${benchmark_FOUND}" "Google Benchmark ${benchmark_VERSION}" "Google Benchmark not found")
include(Cuda)
