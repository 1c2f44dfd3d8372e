# Every option of the build. AUTO means: used where it is found; ON means: an error where it is not.
set(DTRAIN_CUDA AUTO CACHE STRING
  "GPU arms (CUDA toolkit, cuDNN): AUTO, ON, OFF, or EMULATED: on the processor, for tests of the kernels")
set(DTRAIN_CUDA_ARCHITECTURES "80-real;90-real;90-virtual" CACHE STRING
  "GPUs to build for, as CMAKE_CUDA_ARCHITECTURES; 90-virtual is PTX for those to come")
set(DTRAIN_CUDA_ARCHITECTURES_RESULT "")
set(DTRAIN_MPI AUTO CACHE STRING "training on several processes (Open MPI): AUTO, ON or OFF")
set(DTRAIN_NCCL AUTO CACHE STRING "training on several GPUs (NCCL): AUTO, ON or OFF")
set(DTRAIN_TESTS AUTO CACHE STRING "tests (GoogleTest, protobuf): AUTO, ON or OFF")
set(DTRAIN_BENCHMARKS AUTO CACHE STRING "benchmarks (Google Benchmark, CLI11): AUTO, ON or OFF")
set(DTRAIN_CPU_ARCH x86-64-v3 CACHE STRING "-march of the CPU code; the default needs AVX2 and FMA (2013 and later)")
set(DTRAIN_CPU_ARCH_RESULT "-march=${DTRAIN_CPU_ARCH}")
set(DTRAIN_SANITIZE OFF CACHE STRING "sanitizers: OFF, or e.g. address,undefined or thread")
option(DTRAIN_WERROR "warnings are errors" OFF)

# dtrain_resolve(NAME found detail reason): sets DTRAIN_HAVE_<NAME> from DTRAIN_<NAME> (AUTO, ON, OFF) and `found`, and
# DTRAIN_<NAME>_RESULT, what the table says of it: `detail` where it is used, `reason` where it cannot be.
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

# One row per option: what was asked, and what it came to on this machine.
function(dtrain_print_options)
  message(STATUS "dtrain ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  message(STATUS "  option                      asked                       result")
  foreach(name CUDA CUDA_ARCHITECTURES NCCL MPI TESTS BENCHMARKS CPU_ARCH SANITIZE WERROR)
    string(SUBSTRING "DTRAIN_${name}                            " 0 28 option)
    string(REPLACE ";" " " asked "${DTRAIN_${name}}")
    string(SUBSTRING "${asked}                            " 0 28 asked)
    message(STATUS "  ${option}${asked}${DTRAIN_${name}_RESULT}")
  endforeach()
endfunction()
