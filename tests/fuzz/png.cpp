// PNG with repaired checksums.
#include "tests/checksums.h"
#include "tests/fuzz/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string bytes = dtrain::fuzz::text_of(data + 1, size - 1);
  dtrain::repair_png_chunks(bytes);
  bytes.insert(bytes.begin(), static_cast<char>(data[0]));
  return dtrain::fuzz::decode(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}
