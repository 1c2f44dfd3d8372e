# Adds the CUDA backend to dtrain_engine. Kernels are in .cu files, calls of NVIDIA's libraries in
# cuda/{cudnn,cublas,nccl,nvjpeg,library}*.cpp, the NCCL all-reduce in distributed/nccl*.cpp. With DTRAIN_CUDA=EMULATED
# everything is compiled for the CPU against the headers of tests/emulation, whose sources replace
# cuda/{cudnn,...}*.cpp.
file(GLOB kernel_sources CONFIGURE_DEPENDS cuda/*.cu ops/*_cuda.cu)
# Excluded from unity builds: their constants have the same names.
set(lone_kernels)
foreach(op batch_norm_grad depthwise loss masked_losses roi_align update)
  list(APPEND lone_kernels ${CMAKE_CURRENT_SOURCE_DIR}/ops/${op}_cuda.cu)
endforeach()
file(GLOB library_callers CONFIGURE_DEPENDS cuda/cudnn*.cpp cuda/cublas*.cpp cuda/nccl*.cpp
  cuda/nvjpeg*.cpp cuda/library*.cpp)
file(GLOB host_sources CONFIGURE_DEPENDS cuda/*.cpp ops/*_cuda.cpp)
list(REMOVE_ITEM host_sources ${library_callers})
target_sources(dtrain_engine PRIVATE ${host_sources})
target_compile_definitions(dtrain_engine PRIVATE DTRAIN_WITH_CUDA)
if(DTRAIN_HAVE_NCCL)
  file(GLOB nccl_sources CONFIGURE_DEPENDS distributed/nccl*.cpp)
  target_sources(dtrain_engine PRIVATE ${nccl_sources})
  target_compile_definitions(dtrain_engine PRIVATE DTRAIN_WITH_NCCL)
else()
  list(FILTER library_callers EXCLUDE REGEX "cuda/nccl")
endif()
if(DTRAIN_CUDA STREQUAL "EMULATED")
  file(GLOB emulation_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/emulation/*.cpp)
  list(FILTER emulation_sources EXCLUDE REGEX "_test\\.cpp$")
  target_sources(dtrain_engine PRIVATE ${kernel_sources} ${emulation_sources})
  set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/emulation/nccl.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_source_files_properties(${kernel_sources} PROPERTIES LANGUAGE CXX)
  set_source_files_properties(${lone_kernels} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(DTRAIN_SANITIZE)  # loops are unrolled for each kernel size: UBSan would multiply the compile time by five
    set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/ops/depthwise_cuda.cu PROPERTIES
      COMPILE_OPTIONS -fno-sanitize=undefined)
  endif()
  target_compile_options(dtrain_engine PRIVATE -Wno-unknown-pragmas)
  target_include_directories(dtrain_engine BEFORE PRIVATE
    ${PROJECT_SOURCE_DIR}/tests/emulation/include ${PROJECT_SOURCE_DIR}/tests/emulation/stand_ins)
  target_link_libraries(dtrain_engine PRIVATE JPEG::JPEG)  # replaces nvJPEG
else()
  # nvcc parses the headers of each file three times (10 s in total). CMake before 3.31 has no unity builds of CUDA
  # files, so the batches are written here, and excluded from those of later versions.
  if(dtrain_unity_build)
    list(REMOVE_ITEM kernel_sources ${lone_kernels})
    list(LENGTH kernel_sources count)
    math(EXPR last "(${count} - 1) / 4")
    set(batch 0)
    foreach(source IN LISTS kernel_sources)
      string(APPEND batch_${batch} "#include \"${source}\"\n")
      math(EXPR batch "(${batch} + 1) % (${last} + 1)")
    endforeach()
    set(kernel_sources ${lone_kernels})
    foreach(batch RANGE ${last})
      list(APPEND kernel_sources ${CMAKE_CURRENT_BINARY_DIR}/kernels_${batch}.cu)
      file(CONFIGURE OUTPUT kernels_${batch}.cu CONTENT "${batch_${batch}}" @ONLY)
    endforeach()
  endif()
  target_sources(dtrain_engine PRIVATE ${kernel_sources} ${library_callers})
  set_source_files_properties(${kernel_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  # Excluded from unity builds: their conversions to the types of each NVIDIA library have the same names.
  set_source_files_properties(${library_callers} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_include_directories(dtrain_engine PRIVATE ${CUDNN_INCLUDE_DIR})
  if(DTRAIN_HAVE_NCCL)
    target_include_directories(dtrain_engine PRIVATE ${NCCL_INCLUDE_DIR})
  endif()
  # The CUDA runtime is linked statically, other libraries are loaded at first use: the same programs run on the CPU if
  # the driver or a library is missing.
  target_link_libraries(dtrain_engine PRIVATE CUDA::cudart_static ${CMAKE_DL_LIBS})
endif()
