// nvJPEG functions, loaded with dlopen at first use.
#pragma once

#include "libdtrain/cuda/nvjpeg_interface.h"
#include "libdtrain/cuda/shared_library.h"

namespace dtrain::cuda {

struct Nvjpeg {
  SharedLibrary library;
  decltype(::nvjpegGetProperty)* get_property = library.function("nvjpegGetProperty");
  decltype(::nvjpegCreateEx)* create = library.function("nvjpegCreateEx");
  decltype(::nvjpegDestroy)* destroy = library.function("nvjpegDestroy");
  decltype(::nvjpegJpegStateCreate)* state_create = library.function("nvjpegJpegStateCreate");
  decltype(::nvjpegJpegStateDestroy)* state_destroy = library.function("nvjpegJpegStateDestroy");
  decltype(::nvjpegJpegStreamCreate)* stream_create = library.function("nvjpegJpegStreamCreate");
  decltype(::nvjpegJpegStreamDestroy)* stream_destroy = library.function("nvjpegJpegStreamDestroy");
  decltype(::nvjpegJpegStreamParseHeader)* parse_header = library.function("nvjpegJpegStreamParseHeader");
  decltype(::nvjpegJpegStreamGetFrameDimensions)* get_dimensions =
      library.function("nvjpegJpegStreamGetFrameDimensions");
  decltype(::nvjpegDecodeBatchedSupported)* is_supported = library.function("nvjpegDecodeBatchedSupported");
  decltype(::nvjpegDecodeBatchedInitialize)* initialize = library.function("nvjpegDecodeBatchedInitialize");
  decltype(::nvjpegDecodeBatched)* decode = library.function("nvjpegDecodeBatched");

  // Version of the loaded library: 130302 is 13.3.2.
  int version() const {
    int numbers[3] = {};
    for (int i = 0; i < 3; ++i)
      if (get_property(i, &numbers[i]) != NVJPEG_STATUS_SUCCESS) return 0;
    return 10000 * numbers[0] + 100 * numbers[1] + numbers[2];
  }
};

// Throws Error(Fault::resource) where nvJPEG is not installed.
const Nvjpeg& nvjpeg();

}  // namespace dtrain::cuda
