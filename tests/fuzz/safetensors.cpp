// Safetensors files.
#include "dtrain/io/safetensors.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  return fuzz::expect(Fault::data, [&] {
    const SafetensorsFile file(fuzz::file_of("weights", fuzz::text_of(data, size)));
    for (const SafetensorsEntry& entry : file.entries()) {
      std::vector<char> values(entry.bytes);
      file.read(entry, values.data());
    }
  });
}
