# Every option of the build. AUTO means: used where it is found; ON means: an error where it is not.
set(DTRAIN_CUDA AUTO CACHE STRING "GPU arms (CUDA toolkit, cuDNN): AUTO, ON or OFF")
set(DTRAIN_TESTS AUTO CACHE STRING "tests (GoogleTest): AUTO, ON or OFF")
set(DTRAIN_BENCHMARKS AUTO CACHE STRING "micro-benchmarks (Google Benchmark): AUTO, ON or OFF")
set(DTRAIN_CPU_ARCH x86-64-v3 CACHE STRING "-march of the CPU code; the default needs AVX2 and FMA (2013 and later)")
set(DTRAIN_SANITIZE "" CACHE STRING "sanitizers, e.g. address,undefined or thread")
option(DTRAIN_WERROR "warnings are errors" OFF)

# Prints one row per option, with what it came to on this machine.
function(dtrain_print_options)
  message(STATUS "dtrain ${PROJECT_VERSION}  ${CMAKE_BUILD_TYPE}  ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  message(STATUS "  option              asked           result")
  foreach(row IN ITEMS
      "DTRAIN_CUDA|${DTRAIN_CUDA}|${DTRAIN_CUDA_RESULT}"
      "DTRAIN_TESTS|${DTRAIN_TESTS}|${DTRAIN_TESTS_RESULT}"
      "DTRAIN_BENCHMARKS|${DTRAIN_BENCHMARKS}|${DTRAIN_BENCHMARKS_RESULT}"
      "DTRAIN_CPU_ARCH|${DTRAIN_CPU_ARCH}|-march=${DTRAIN_CPU_ARCH}"
      "DTRAIN_SANITIZE|${DTRAIN_SANITIZE}|${DTRAIN_SANITIZE}"
      "DTRAIN_WERROR|${DTRAIN_WERROR}|${DTRAIN_WERROR}")
    string(REPLACE "|" ";" cells "${row}")
    list(GET cells 0 name)
    list(GET cells 1 asked)
    list(GET cells 2 result)
    foreach(cell name asked)
      string(LENGTH "${${cell}}" length)
      if(cell STREQUAL name)
        math(EXPR pad "20 - ${length}")
      else()
        math(EXPR pad "16 - ${length}")
      endif()
      if(pad GREATER 0)
        string(REPEAT " " ${pad} spaces)
        set(${cell} "${${cell}}${spaces}")
      endif()
    endforeach()
    message(STATUS "  ${name}${asked}${result}")
  endforeach()
endfunction()
