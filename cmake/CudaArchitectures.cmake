# Sets CMAKE_CUDA_ARCHITECTURES to DTRAIN_CUDA_ARCHITECTURES. The value RELEASE stands for the architectures of releases
# and container images: machine code for every supported GPU, and PTX of the newest for later GPUs. CUDA 13 supports GPUs
# from Turing, CUDA 12 from Volta. Machine code for 90a runs on the same GPUs as for 90.
set(CMAKE_CUDA_ARCHITECTURES ${DTRAIN_CUDA_ARCHITECTURES})
if(DTRAIN_CUDA_ARCHITECTURES STREQUAL "RELEASE")
  execute_process(COMMAND ${DTRAIN_NVCC} --version OUTPUT_VARIABLE said ERROR_QUIET)
  if(said MATCHES "release 12")
    set(CMAKE_CUDA_ARCHITECTURES 70-real 75-real 80-real 86-real 89-real 90a-real 90-virtual)
  else()
    set(CMAKE_CUDA_ARCHITECTURES 80-real 86-real 89-real 90a-real 100-real 120-real 120-virtual)
  endif()
endif()
