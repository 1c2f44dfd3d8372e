// Replaces libdtrain/cuda/nvjpeg_library.h: the emulated nvJPEG, linked into the program.
#pragma once

#include "libdtrain/cuda/nvjpeg_interface.h"

namespace dtrain::cuda {

struct Nvjpeg {
  decltype(::nvjpegCreateEx)* create = nvjpegCreateEx;
  decltype(::nvjpegDestroy)* destroy = nvjpegDestroy;
  decltype(::nvjpegJpegStateCreate)* state_create = nvjpegJpegStateCreate;
  decltype(::nvjpegJpegStateDestroy)* state_destroy = nvjpegJpegStateDestroy;
  decltype(::nvjpegJpegStreamCreate)* stream_create = nvjpegJpegStreamCreate;
  decltype(::nvjpegJpegStreamDestroy)* stream_destroy = nvjpegJpegStreamDestroy;
  decltype(::nvjpegJpegStreamParseHeader)* parse_header = nvjpegJpegStreamParseHeader;
  decltype(::nvjpegJpegStreamGetFrameDimensions)* get_dimensions = nvjpegJpegStreamGetFrameDimensions;
  decltype(::nvjpegDecodeBatchedSupported)* is_supported = nvjpegDecodeBatchedSupported;
  decltype(::nvjpegDecodeBatchedInitialize)* initialize = nvjpegDecodeBatchedInitialize;
  decltype(::nvjpegDecodeBatched)* decode = nvjpegDecodeBatched;
};

inline const Nvjpeg& nvjpeg() {
  static const Nvjpeg functions;
  return functions;
}

}  // namespace dtrain::cuda
