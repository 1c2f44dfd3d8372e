// EXIF blocks of JPEGs.
#include "data/orientation.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int orientation = dtrain::data::exif_orientation(std::as_bytes(std::span(data, size)));
  if (orientation < 1 || orientation > 8) std::abort();
  return 0;
}
