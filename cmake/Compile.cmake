# dtrain_compile: interface target with warnings, sanitizers and code generation flags. Every target links it privately.
add_library(dtrain_compile INTERFACE)
target_compile_options(dtrain_compile INTERFACE
  # -Wpedantic is for host files only: it rejects the line directives of nvcc. -Wrestrict has a false positive in
  # GCC 12's std::string.
  $<$<COMPILE_LANGUAGE:CXX>:-march=${DTRAIN_CPU_ARCH} -ffp-contract=fast -Wall -Wextra -Wpedantic -Wshadow>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-error=restrict>
  # GCC 13 and later avoid FMA in vectorised reductions, as tuning for some processors: results would depend on the
  # version of the compiler, and fused kernels would round otherwise than plain ones.
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_GREATER_EQUAL:${CMAKE_CXX_COMPILER_VERSION},13>>:--param=avoid-fma-max-bits=0>
  # Unity builds: -Wsubobject-linkage takes an included source for a header, and inlining across sources causes more
  # false positives.
  "$<$<AND:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:-Wno-subobject-linkage;-Wno-restrict;-Wno-maybe-uninitialized>"
  # Clang warns about every `omp simd` loop that it does not vectorise; GCC does not.
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-pass-failed>
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -lineinfo -Xcompiler=-Wall,-Wextra,-Wshadow>
  # Compression reduces the fatbin to a ninth. Drivers of CUDA 12 may lack the compression mode of CUDA 13.
  $<$<COMPILE_LANGUAGE:CUDA>:$<IF:$<VERSION_GREATER_EQUAL:${CMAKE_CUDA_COMPILER_VERSION}.0,13>,--compress-mode=size,-Xfatbin=-compress-all>>)
if(DTRAIN_WERROR)
  target_compile_options(dtrain_compile INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>
    $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Werror>)
endif()
if(DTRAIN_SANITIZE)
  # -Wmaybe-uninitialized has false positives in GCC's sanitized code.
  set(dtrain_sanitize_options -fsanitize=${DTRAIN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  # AddressSanitizer finds null pointers and accesses out of bounds, too. These UBSan checks take two fifths of the
  # compile time; vptr also needs RTTI of every class.
  if(DTRAIN_SANITIZE MATCHES address)
    list(APPEND dtrain_sanitize_options -fno-sanitize=null,pointer-overflow,object-size,vptr)
  endif()
  add_compile_options(${dtrain_sanitize_options})
  add_link_options(-fsanitize=${DTRAIN_SANITIZE})
  # Sanitized programs have 200 MB each: GNU ld takes three times as long as mold.
  find_program(DTRAIN_MOLD mold)
  if(DTRAIN_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
# Only parsers of untrusted input carry libFuzzer's coverage counters, which would slow down kernels.
if(DTRAIN_FUZZERS)
  set(dtrain_fuzz_options -fsanitize=fuzzer-no-link)
endif()
# The compiler launcher is cached: a change would rebuild the whole tree.
if(NOT DEFINED DTRAIN_COMPILER_LAUNCHER)
  find_program(ccache ccache NO_CACHE)
  if(NOT ccache)
    set(ccache "")
  endif()
  set(DTRAIN_COMPILER_LAUNCHER "${ccache}" CACHE STRING "compiler launcher: ccache if found, else empty")
endif()
if(DTRAIN_COMPILER_LAUNCHER AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${DTRAIN_COMPILER_LAUNCHER})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${DTRAIN_COMPILER_LAUNCHER})
endif()

# Unity builds of 16 sources per unit, because headers take half of the compile time. -DCMAKE_UNITY_BUILD=OFF compiles
# each source alone.
if(NOT DEFINED CMAKE_UNITY_BUILD_BATCH_SIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
endif()
set(dtrain_unity_build ON)
if(DEFINED CMAKE_UNITY_BUILD)
  set(dtrain_unity_build ${CMAKE_UNITY_BUILD})
endif()

# dtrain_gather_json(VARIABLE): moves sources that include nlohmann/json.hpp to the front of a list, so that they share
# unity units. The header costs four seconds per unit.
function(dtrain_gather_json variable)
  set(with_json)
  set(without_json)
  foreach(source IN LISTS ${variable})
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    file(STRINGS ${path} includes REGEX "^#include <nlohmann/json\\.hpp>" LIMIT_COUNT 1)
    if(includes)
      list(APPEND with_json ${source})
    else()
      list(APPEND without_json ${source})
    endif()
  endforeach()
  set(${variable} ${with_json} ${without_json} PARENT_SCOPE)
endfunction()

# dtrain_add_library(NAME SOURCES...): library libdtrain_NAME, exported as dtrain::NAME; shared if BUILD_SHARED_LIBS is
# on.
function(dtrain_add_library name)
  set(sources ${ARGN})
  dtrain_gather_json(sources)
  add_library(dtrain_${name} ${sources})
  add_library(dtrain::${name} ALIAS dtrain_${name})
  set_target_properties(dtrain_${name} PROPERTIES EXPORT_NAME ${name}
    SOVERSION ${DTRAIN_SOVERSION} INSTALL_RPATH "$ORIGIN"  # no VERSION: one file, because wheels have no links
    UNITY_BUILD ${dtrain_unity_build}
    DEFINE_SYMBOL "")  # same command lines for static and shared builds, so that ccache serves both
  target_compile_features(dtrain_${name} PUBLIC cxx_std_20)
  target_include_directories(dtrain_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(dtrain_${name} PRIVATE $<BUILD_INTERFACE:dtrain_compile>)
endfunction()

# dtrain_add_objects(NAME SOURCES...): object library dtrain_NAME, a part of a library with separate compile options.
# It is instrumented for fuzzing, because all such parts parse input.
function(dtrain_add_objects name)
  set(sources ${ARGN})
  dtrain_gather_json(sources)
  add_library(dtrain_${name} OBJECT ${sources})
  set_target_properties(dtrain_${name} PROPERTIES UNITY_BUILD ${dtrain_unity_build})
  target_compile_features(dtrain_${name} PRIVATE cxx_std_20)
  target_compile_options(dtrain_${name} PRIVATE ${dtrain_fuzz_options})
  target_include_directories(dtrain_${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}
    ${PROJECT_BINARY_DIR}/include)
  target_link_libraries(dtrain_${name} PRIVATE dtrain_compile fmt::fmt nlohmann_json::nlohmann_json ZLIB::ZLIB)
endfunction()

# dtrain_add_program_library(TARGET SOURCES...): library that several programs link, shared if BUILD_SHARED_LIBS is on.
# It is private: in a folder of its own, without headers and without a stable ABI.
function(dtrain_add_program_library target)
  set(sources ${ARGN})
  dtrain_gather_json(sources)
  add_library(${target} ${sources})
  set_target_properties(${target} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION}
    INSTALL_RPATH "$ORIGIN;$ORIGIN/.." DEFINE_SYMBOL "" UNITY_BUILD ${dtrain_unity_build})
  target_compile_options(${target} PRIVATE ${dtrain_fuzz_options})
  if(BUILD_SHARED_LIBS)
    install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/dtrain COMPONENT programs NAMELINK_SKIP)
  endif()
endfunction()

# dtrain_add_program(NAME FOLDER LIBRARIES...): program NAME from apps/FOLDER. All sources except main.cpp form the
# library dtrain_app_FOLDER, which tests link, too. The target `programs` builds all programs.
add_custom_target(programs)
function(dtrain_add_program name folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  add_executable(${name} ${PROJECT_SOURCE_DIR}/apps/${folder}/main.cpp $<TARGET_OBJECTS:dtrain_processor_check>)
  target_link_libraries(${name} PRIVATE dtrain_cli ${ARGN} dtrain_compile)
  if(sources)
    dtrain_add_program_library(dtrain_app_${folder} ${sources})
    target_link_libraries(dtrain_app_${folder} PUBLIC dtrain_cli PRIVATE dtrain_compile)
    target_link_libraries(${name} PRIVATE dtrain_app_${folder})
    set_property(GLOBAL APPEND PROPERTY DTRAIN_APP_LIBRARIES dtrain_app_${folder})
  endif()
  add_dependencies(programs ${name})
  # Shared libraries are found relative to the program, also by libraries that need others: DT_RPATH of the program is for
  # all of them, DT_RUNPATH only for those that the program itself names.
  target_link_options(${name} PRIVATE -Wl,--disable-new-dtags)
  set_target_properties(${name} PROPERTIES INSTALL_RPATH
    "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/dtrain;$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS ${name} COMPONENT programs)
  set_property(GLOBAL APPEND PROPERTY DTRAIN_PROGRAMS ${name})
endfunction()
