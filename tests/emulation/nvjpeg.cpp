// nvJPEG calls by libjpeg-turbo. Like the real one it reads an image when its stream gets there, which reveals early
// changes, and rejects images that hardware decoders do not support: progressive, arithmetic-coded, four components.
#include "libdtrain/cuda/nvjpeg_interface.h"

#include <cstdio>
// jpeglib.h needs FILE.
#include <jpeglib.h>

#include <atomic>
#include <csetjmp>
#include <memory>
#include <vector>

#include "tests/emulation/block.h"
#include "tests/emulation/emulation.h"

struct nvjpegHandle {
  bool interpolates;
};
struct nvjpegJpegState {
  int batch = 0;
  std::shared_ptr<std::atomic<int>> under_way = std::make_shared<std::atomic<int>>(0);  // batches in progress
};
struct nvjpegJpegStream {
  bool known = false, supported = false;
  unsigned width = 0, height = 0;
};

namespace emulation {
namespace {

bool engine = true;

struct Errors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
};

[[noreturn]] void leave(j_common_ptr codec) { std::longjmp(reinterpret_cast<Errors*>(codec->err)->jump, 1); }
void count(j_common_ptr codec, int level) {
  if (level < 0) ++codec->err->num_warnings;
}

struct Source {
  const unsigned char* data;
  size_t length;
  bool interpolates;
};

// Calls work(codec) after the header; false on failure or a libjpeg warning. Contains no destructors.
template <class Work>
bool read_jpeg(const Source& source, Work work) {
  jpeg_decompress_struct codec{};
  Errors errors{};
  codec.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = leave;
  errors.base.emit_message = count;
  jpeg_create_decompress(&codec);
  volatile bool good = false;
  if (setjmp(errors.jump) == 0) {
    jpeg_mem_src(&codec, source.data, source.length);
    jpeg_read_header(&codec, TRUE);
    work(codec);
    good = errors.base.num_warnings == 0;
  }
  jpeg_destroy_decompress(&codec);
  return good;
}

// Decodes rows of `pitch` bytes to `to`; discards them if it is null.
bool decode(const Source& source, unsigned char* to, size_t pitch, std::vector<unsigned char>& row) {
  return read_jpeg(source, [&](jpeg_decompress_struct& codec) {
    codec.out_color_space = JCS_RGB;
    codec.do_fancy_upsampling = source.interpolates ? TRUE : FALSE;
    jpeg_start_decompress(&codec);
    if (to == nullptr) row.resize(size_t{3} * codec.output_width);
    while (codec.output_scanline < codec.output_height) {
      unsigned char* rows = to == nullptr ? row.data() : to + codec.output_scanline * pitch;
      jpeg_read_scanlines(&codec, &rows, 1);
    }
    jpeg_finish_decompress(&codec);
  });
}

}  // namespace

void set_jpeg_engine(bool there_is_one) { engine = there_is_one; }

}  // namespace emulation

nvjpegStatus_t nvjpegCreateEx(nvjpegBackend_t backend, nvjpegDevAllocator_t*, nvjpegPinnedAllocator_t*,
                              unsigned int flags, nvjpegHandle_t* handle) {
  if (backend == NVJPEG_BACKEND_HARDWARE && !emulation::engine) return NVJPEG_STATUS_ARCH_MISMATCH;
  *handle = new nvjpegHandle{(flags & NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION) != 0};
  return NVJPEG_STATUS_SUCCESS;
}
nvjpegStatus_t nvjpegDestroy(nvjpegHandle_t handle) {
  delete handle;
  return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegJpegStateCreate(nvjpegHandle_t, nvjpegJpegState_t* state) {
  *state = new nvjpegJpegState;
  return NVJPEG_STATUS_SUCCESS;
}
nvjpegStatus_t nvjpegJpegStateDestroy(nvjpegJpegState_t state) {
  delete state;
  return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegJpegStreamCreate(nvjpegHandle_t, nvjpegJpegStream_t* stream) {
  *stream = new nvjpegJpegStream;
  return NVJPEG_STATUS_SUCCESS;
}
nvjpegStatus_t nvjpegJpegStreamDestroy(nvjpegJpegStream_t stream) {
  delete stream;
  return NVJPEG_STATUS_SUCCESS;
}
nvjpegStatus_t nvjpegJpegStreamParseHeader(nvjpegHandle_t, const unsigned char* data, size_t length,
                                           nvjpegJpegStream_t stream) {
  stream->known = emulation::read_jpeg({data, length, false}, [&](jpeg_decompress_struct& codec) {
    stream->supported = codec.progressive_mode == 0 && codec.arith_code == 0 && codec.num_components != 4;
    stream->width = codec.image_width;
    stream->height = codec.image_height;
  });
  return stream->known ? NVJPEG_STATUS_SUCCESS : NVJPEG_STATUS_BAD_JPEG;
}

nvjpegStatus_t nvjpegJpegStreamGetFrameDimensions(nvjpegJpegStream_t stream, unsigned int* width,
                                                  unsigned int* height) {
  *width = stream->width;
  *height = stream->height;
  return stream->known ? NVJPEG_STATUS_SUCCESS : NVJPEG_STATUS_INVALID_PARAMETER;
}

nvjpegStatus_t nvjpegDecodeBatchedSupported(nvjpegHandle_t, nvjpegJpegStream_t stream, int* is_supported) {
  if (!stream->known) return NVJPEG_STATUS_INVALID_PARAMETER;
  *is_supported = stream->supported ? 0 : 1;
  return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegDecodeBatchedInitialize(nvjpegHandle_t, nvjpegJpegState_t state, int batch_size, int,
                                             nvjpegOutputFormat_t output_format) {
  if (batch_size < 1 || output_format != NVJPEG_OUTPUT_RGBI) return NVJPEG_STATUS_INVALID_PARAMETER;
  if (*state->under_way > 0) emulation::fail("nvJPEG: a state is used again while its last batch is under way");
  state->batch = batch_size;
  return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegDecodeBatched(nvjpegHandle_t handle, nvjpegJpegState_t state, const unsigned char* const* data,
                                   const size_t* lengths, nvjpegImage_t* destinations, cudaStream_t stream) {
  if (state->batch < 1) return NVJPEG_STATUS_NOT_INITIALIZED;
  std::vector<unsigned char> row;
  for (int i = 0; i < state->batch; ++i)
    if (!emulation::decode({data[i], lengths[i], handle->interpolates}, nullptr, 0, row)) return NVJPEG_STATUS_BAD_JPEG;
  ++*state->under_way;
  for (int i = 0; i < state->batch; ++i) {
    const emulation::Source source{data[i], lengths[i], handle->interpolates};
    const cudaError_t queued = emulation::enqueue(stream, [source, to = destinations[i]] {
      std::vector<unsigned char> none;
      if (!emulation::decode(source, to.channel[0], to.pitch[0], none))
        emulation::fail("nvJPEG: an image was changed before it was decoded");
    });
    if (queued != cudaSuccess) return NVJPEG_STATUS_EXECUTION_FAILED;
  }
  const cudaError_t queued = emulation::enqueue(stream, [count = state->under_way] { --*count; });
  return queued == cudaSuccess ? NVJPEG_STATUS_SUCCESS : NVJPEG_STATUS_EXECUTION_FAILED;
}
