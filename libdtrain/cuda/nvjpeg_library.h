// nvJPEG functions, loaded with dlopen at first use.
#pragma once

#include "libdtrain/core/shared_library.h"
#include "libdtrain/cuda/nvjpeg_interface.h"

namespace dtrain::cuda {

struct Nvjpeg {
  SharedLibrary library;
  decltype(::nvjpegGetProperty)* get_property = library.symbol("nvjpegGetProperty");
  decltype(::nvjpegCreateEx)* create = library.symbol("nvjpegCreateEx");
  decltype(::nvjpegDestroy)* destroy = library.symbol("nvjpegDestroy");
  decltype(::nvjpegJpegStateCreate)* state_create = library.symbol("nvjpegJpegStateCreate");
  decltype(::nvjpegJpegStateDestroy)* state_destroy = library.symbol("nvjpegJpegStateDestroy");
  decltype(::nvjpegJpegStreamCreate)* stream_create = library.symbol("nvjpegJpegStreamCreate");
  decltype(::nvjpegJpegStreamDestroy)* stream_destroy = library.symbol("nvjpegJpegStreamDestroy");
  decltype(::nvjpegJpegStreamParseHeader)* parse_header = library.symbol("nvjpegJpegStreamParseHeader");
  decltype(::nvjpegJpegStreamGetFrameDimensions)* get_dimensions = library.symbol("nvjpegJpegStreamGetFrameDimensions");
  decltype(::nvjpegDecodeBatchedSupported)* is_supported = library.symbol("nvjpegDecodeBatchedSupported");
  decltype(::nvjpegDecodeBatchedInitialize)* initialize = library.symbol("nvjpegDecodeBatchedInitialize");
  decltype(::nvjpegDecodeBatched)* decode = library.symbol("nvjpegDecodeBatched");

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
