// JPEG, by the built-in baseline decoder and by libjpeg-turbo.
#include "tests/fuzz/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) { return dtrain::fuzz::decode(data, size); }
