# Warnings, sanitizers and code generation, as one interface target that every target of ours links privately.
add_library(dtrain_compile INTERFACE)
target_compile_options(dtrain_compile INTERFACE
  # -Wpedantic rejects the line directives that nvcc generates, so it is for host files only. -Wrestrict raises a false
  # alarm in GCC 12's std::string.
  $<$<COMPILE_LANGUAGE:CXX>:-march=${DTRAIN_CPU_ARCH} -ffp-contract=fast -Wall -Wextra -Wpedantic -Wshadow>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-error=restrict>
  # Files that are compiled together have the types of all of them, and are no header; and what is inlined across them
  # raises more false alarms.
  "$<$<AND:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:-Wno-subobject-linkage;-Wno-restrict;-Wno-maybe-uninitialized>"
  # Clang says of loops that it leaves as they are what GCC keeps to itself.
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-pass-failed>
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -lineinfo -Xcompiler=-Wall,-Wextra,-Wshadow>
  # Kernels are mostly repetition: a ninth of their size is left. What CUDA 13's drivers unpack, those of 12 may not.
  $<$<COMPILE_LANGUAGE:CUDA>:$<IF:$<VERSION_GREATER_EQUAL:${CMAKE_CUDA_COMPILER_VERSION}.0,13>,--compress-mode=size,-Xfatbin=-compress-all>>)
if(DTRAIN_WERROR)
  target_compile_options(dtrain_compile INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>
    $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Werror>)
endif()
if(DTRAIN_SANITIZE)
  # GCC's sanitizers make its flow analysis see uninitialised values that are not there.
  set(dtrain_sanitize_options -fsanitize=${DTRAIN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  # AddressSanitizer finds null pointers and accesses out of bounds as well; these checks of each access take two fifths of
  # the compile time, and vptr needs the type information of every class.
  if(DTRAIN_SANITIZE MATCHES address)
    list(APPEND dtrain_sanitize_options -fno-sanitize=null,pointer-overflow,object-size,vptr)
  endif()
  add_compile_options(${dtrain_sanitize_options})
  add_link_options(-fsanitize=${DTRAIN_SANITIZE})
  # Each program is 200 MB of instrumented engine, for which binutils' linker takes three times as long.
  find_program(DTRAIN_MOLD mold)
  if(DTRAIN_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
# The parsers of untrusted input carry libFuzzer's coverage counters, and nothing else does: they slow down kernels.
if(DTRAIN_FUZZERS)
  set(dtrain_fuzz_options -fsanitize=fuzzer-no-link)
endif()
# A build tree keeps the launcher that it was configured with: another one would compile all of it again.
if(NOT DEFINED DTRAIN_COMPILER_LAUNCHER)
  find_program(ccache ccache NO_CACHE)
  if(NOT ccache)
    set(ccache "")
  endif()
  set(DTRAIN_COMPILER_LAUNCHER "${ccache}" CACHE STRING "runs the compilers: ccache, where it was found, or nothing")
endif()
if(DTRAIN_COMPILER_LAUNCHER AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${DTRAIN_COMPILER_LAUNCHER})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${DTRAIN_COMPILER_LAUNCHER})
endif()

# Unity builds: sources of a library are compiled sixteen at a time, because headers take half of their compile time,
# unless -DCMAKE_UNITY_BUILD=OFF asks for each on its own.
if(NOT DEFINED CMAKE_UNITY_BUILD_BATCH_SIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
endif()
set(dtrain_unity_build ON)
if(DEFINED CMAKE_UNITY_BUILD)
  set(dtrain_unity_build ${CMAKE_UNITY_BUILD})
endif()

# dtrain_gather_json(VARIABLE): moves the sources that include nlohmann/json.hpp to the front of a list, so that they share
# unity units: its templates take four seconds in each unit that has one of them.
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

# dtrain_add_library(engine sources...): the library libdtrain_engine with the exported name dtrain::engine; static, unless
# BUILD_SHARED_LIBS asks for one that all programs share.
function(dtrain_add_library name)
  set(sources ${ARGN})
  dtrain_gather_json(sources)
  add_library(dtrain_${name} ${sources})
  add_library(dtrain::${name} ALIAS dtrain_${name})
  set_target_properties(dtrain_${name} PROPERTIES EXPORT_NAME ${name}
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} INSTALL_RPATH "$ORIGIN"
    UNITY_BUILD ${dtrain_unity_build}
    DEFINE_SYMBOL "")  # so that both kinds are compiled alike, and a compiler cache serves both
  target_compile_features(dtrain_${name} PUBLIC cxx_std_20)
  target_include_directories(dtrain_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/dtrain>)
  target_link_libraries(dtrain_${name} PRIVATE $<BUILD_INTERFACE:dtrain_compile>)
endfunction()

# dtrain_add_objects(name sources...): the objects dtrain_<name> of a part of a library that has compile options of its own.
# They carry the counters of fuzzers: all such parts read input.
function(dtrain_add_objects name)
  set(sources ${ARGN})
  dtrain_gather_json(sources)
  add_library(dtrain_${name} OBJECT ${sources})
  set_target_properties(dtrain_${name} PROPERTIES UNITY_BUILD ${dtrain_unity_build})
  target_compile_features(dtrain_${name} PRIVATE cxx_std_20)
  target_compile_options(dtrain_${name} PRIVATE ${dtrain_fuzz_options})
  target_include_directories(dtrain_${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include)
  target_link_libraries(dtrain_${name} PRIVATE dtrain_compile fmt::fmt nlohmann_json::nlohmann_json ZLIB::ZLIB)
endfunction()

# dtrain_add_program_library(target sources...): what several programs are made of. They share it where they share the
# engine; it has no headers that are installed.
function(dtrain_add_program_library target)
  set(sources ${ARGN})
  dtrain_gather_json(sources)
  add_library(${target} ${sources})
  set_target_properties(${target} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION}
    INSTALL_RPATH "$ORIGIN" DEFINE_SYMBOL "" UNITY_BUILD ${dtrain_unity_build})
  target_compile_options(${target} PRIVATE ${dtrain_fuzz_options})
  if(BUILD_SHARED_LIBS)
    install(TARGETS ${target} LIBRARY COMPONENT programs NAMELINK_SKIP)
  endif()
endfunction()

# dtrain_add_program(dtrain-name folder libraries...): the program dtrain-name from apps/<folder>. All but its main.cpp
# goes into a library, dtrain_app_<folder>, which tests link too. The target `programs` builds them all.
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
  # An archive of the programs brings the libraries that they need; see Package.cmake. Those need others of them, which
  # the loader looks for by DT_RPATH of the program, and not by the newer DT_RUNPATH.
  target_link_options(${name} PRIVATE -Wl,--disable-new-dtags)
  set_target_properties(${name} PROPERTIES INSTALL_RPATH
    "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/dtrain;$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS ${name} RUNTIME_DEPENDENCY_SET dtrain_libraries COMPONENT programs)
  set_property(GLOBAL APPEND PROPERTY DTRAIN_PROGRAMS ${name})
endfunction()
