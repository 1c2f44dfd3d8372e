// BMP, GIF, WebP and TIFF.
#include "tests/fuzz/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) { return dtrain::fuzz::decode(data, size); }
