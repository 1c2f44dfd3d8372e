# Build options. AUTO uses a dependency if it is found; ON makes a missing dependency an error.
set(DTRAIN_CUDA AUTO CACHE STRING
  "CUDA backend (CUDA toolkit, cuDNN): AUTO, ON, OFF or EMULATED (kernels run on the CPU, for tests)")
set(DTRAIN_CUDA_ARCHITECTURES "80-real;90-real;90-virtual" CACHE STRING
  "GPU architectures, as in CMAKE_CUDA_ARCHITECTURES; 90-virtual adds PTX for later GPUs; RELEASE: those of releases")
set(DTRAIN_CUDA_ARCHITECTURES_RESULT "")
set(DTRAIN_MPI AUTO CACHE STRING "tests and benchmarks under mpirun (Open MPI): AUTO, ON or OFF")
set(DTRAIN_NCCL AUTO CACHE STRING "multi-GPU training (NCCL): AUTO, ON or OFF")
set(DTRAIN_TESTS AUTO CACHE STRING "tests (GoogleTest): AUTO, ON or OFF")
set(DTRAIN_BENCHMARKS AUTO CACHE STRING "benchmarks (Google Benchmark): AUTO, ON or OFF")
# On other processors than x86-64 the engine has the `scalar` kernels only; char is signed there, too. The processor is
# empty if CMake cannot find uname.
set(DTRAIN_X86 ON)
set(default_cpu_arch x86-64-v3)
if(CMAKE_SYSTEM_PROCESSOR AND NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(DTRAIN_X86 OFF)
  set(default_cpu_arch armv8-a)
  add_compile_options(-fsigned-char)
endif()
set(DTRAIN_CPU_ARCH ${default_cpu_arch} CACHE STRING
  "-march of CPU code; default and minimum: x86-64-v3 (AVX2, FMA), on aarch64 armv8-a")
set(DTRAIN_CPU_ARCH_RESULT "-march=${DTRAIN_CPU_ARCH}")
set(DTRAIN_SANITIZE OFF CACHE STRING "sanitizers: OFF, or e.g. address,undefined or thread")
option(BUILD_SHARED_LIBS "shared libraries: all programs use one engine" ON)
option(DTRAIN_FUZZERS "libFuzzer targets for all parsers of untrusted input (needs Clang)" OFF)
option(DTRAIN_FAULTS "fault injection for tests: programs read DTRAIN_FAULT" OFF)
option(DTRAIN_WERROR "warnings are errors" OFF)

# dtrain_resolve(NAME found detail reason): sets DTRAIN_HAVE_<NAME> from DTRAIN_<NAME> (AUTO, ON, OFF) and `found`. Sets
# DTRAIN_<NAME>_RESULT for the summary: `detail` if the dependency is used, else `reason`.
function(dtrain_resolve name found detail reason)
  set(have OFF)
  if(DTRAIN_${name} STREQUAL "OFF")
    set(result "off")
  elseif(found)
    set(have ON)
    set(result "${detail}")
  elseif(DTRAIN_${name} STREQUAL "AUTO")
    set(result "off: ${reason}")
  else()
    message(FATAL_ERROR "DTRAIN_${name}=${DTRAIN_${name}} cannot be met: ${reason}")
  endif()
  set(DTRAIN_HAVE_${name} ${have} PARENT_SCOPE)
  set(DTRAIN_${name}_RESULT "${result}" PARENT_SCOPE)
endfunction()

# Prints the summary: one row per option with the requested value and the result on this machine.
function(dtrain_print_options)
  message(STATUS "dtrain ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  message(STATUS "  option                      asked                       result")
  foreach(name CUDA CUDA_ARCHITECTURES NCCL MPI TESTS BENCHMARKS CPU_ARCH SANITIZE FUZZERS FAULTS WERROR)
    string(SUBSTRING "DTRAIN_${name}                            " 0 28 option)
    string(REPLACE ";" " " asked "${DTRAIN_${name}}")
    string(SUBSTRING "${asked}                            " 0 28 asked)
    message(STATUS "  ${option}${asked}${DTRAIN_${name}_RESULT}")
  endforeach()
endfunction()
