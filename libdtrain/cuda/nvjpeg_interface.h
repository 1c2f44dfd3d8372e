// Subset of nvJPEG's API, declared here because not every toolkit ships its header. Identical in nvJPEG 12.4 and 13.3.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

extern "C" {

enum nvjpegStatus_t {
  NVJPEG_STATUS_SUCCESS = 0,
  NVJPEG_STATUS_NOT_INITIALIZED = 1,
  NVJPEG_STATUS_INVALID_PARAMETER = 2,
  NVJPEG_STATUS_BAD_JPEG = 3,
  NVJPEG_STATUS_JPEG_NOT_SUPPORTED = 4,
  NVJPEG_STATUS_ALLOCATOR_FAILURE = 5,
  NVJPEG_STATUS_EXECUTION_FAILED = 6,
  NVJPEG_STATUS_ARCH_MISMATCH = 7,
  NVJPEG_STATUS_INTERNAL_ERROR = 8,
  NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED = 9,
  NVJPEG_STATUS_INCOMPLETE_BITSTREAM = 10
};

enum nvjpegBackend_t { NVJPEG_BACKEND_GPU_HYBRID = 2, NVJPEG_BACKEND_HARDWARE = 3 };
enum nvjpegOutputFormat_t { NVJPEG_OUTPUT_RGBI = 5 };
enum { NVJPEG_FLAGS_BITSTREAM_STRICT = 1 << 2, NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION = 1 << 5 };
enum { NVJPEG_MAX_COMPONENT = 4 };

struct nvjpegImage_t {
  unsigned char* channel[NVJPEG_MAX_COMPONENT];
  size_t pitch[NVJPEG_MAX_COMPONENT];
};

typedef struct nvjpegHandle* nvjpegHandle_t;
typedef struct nvjpegJpegState* nvjpegJpegState_t;
typedef struct nvjpegJpegStream* nvjpegJpegStream_t;
struct nvjpegDevAllocator_t;
struct nvjpegPinnedAllocator_t;

// `type`: 0 the major version, 1 the minor, 2 the patch level.
nvjpegStatus_t nvjpegGetProperty(int type, int* value);
nvjpegStatus_t nvjpegCreateEx(nvjpegBackend_t backend, nvjpegDevAllocator_t* dev_allocator,
                              nvjpegPinnedAllocator_t* pinned_allocator, unsigned int flags, nvjpegHandle_t* handle);
nvjpegStatus_t nvjpegDestroy(nvjpegHandle_t handle);
nvjpegStatus_t nvjpegJpegStateCreate(nvjpegHandle_t handle, nvjpegJpegState_t* state);
nvjpegStatus_t nvjpegJpegStateDestroy(nvjpegJpegState_t state);
nvjpegStatus_t nvjpegJpegStreamCreate(nvjpegHandle_t handle, nvjpegJpegStream_t* stream);
nvjpegStatus_t nvjpegJpegStreamDestroy(nvjpegJpegStream_t stream);
nvjpegStatus_t nvjpegJpegStreamParseHeader(nvjpegHandle_t handle, const unsigned char* data, size_t length,
                                           nvjpegJpegStream_t stream);
nvjpegStatus_t nvjpegJpegStreamGetFrameDimensions(nvjpegJpegStream_t stream, unsigned int* width, unsigned int* height);
// `is_supported` is 0 where the stream is supported.
nvjpegStatus_t nvjpegDecodeBatchedSupported(nvjpegHandle_t handle, nvjpegJpegStream_t stream, int* is_supported);
nvjpegStatus_t nvjpegDecodeBatchedInitialize(nvjpegHandle_t handle, nvjpegJpegState_t state, int batch_size,
                                             int max_cpu_threads, nvjpegOutputFormat_t output_format);
nvjpegStatus_t nvjpegDecodeBatched(nvjpegHandle_t handle, nvjpegJpegState_t state, const unsigned char* const* data,
                                   const size_t* lengths, nvjpegImage_t* destinations, cudaStream_t stream);

}  // extern "C"
