# Sets CMAKE_CUDA_ARCHITECTURES to DTRAIN_CUDA_ARCHITECTURES. RELEASE stands for the architectures of releases and
# container images: machine code for GPUs of data centres and workstations, and PTX of the newest for later GPUs. CUDA 13
# does not support Volta (70); nvcc 12.4 does not know Blackwell (100, 120). Machine code for 90a runs on H100 and H200.
set(CMAKE_CUDA_ARCHITECTURES ${DTRAIN_CUDA_ARCHITECTURES})
if(DTRAIN_CUDA_ARCHITECTURES STREQUAL "RELEASE")
  execute_process(COMMAND ${DTRAIN_NVCC} --version OUTPUT_VARIABLE said ERROR_QUIET)
  if(said MATCHES "release 12")
    set(CMAKE_CUDA_ARCHITECTURES 70-real 75-real 80-real 86-real 89-real 90a-real 90-virtual)
  else()
    set(CMAKE_CUDA_ARCHITECTURES 80-real 86-real 89-real 90a-real 100-real 120-real 120-virtual)
  endif()
endif()
