// Weight files in either format, detected by the first bytes.
#include "dtrain/io/array_file.h"

#include <stdexcept>

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  return fuzz::expect(Fault::data, [&] {
    const ArrayFile file(fuzz::file_of("weights", fuzz::text_of(data, size)));
    for (const ArrayEntry& entry : file.entries()) {
      // Loaders index the elements by the shape.
      if (file.readable(entry) && file.read(entry).size() != static_cast<size_t>(entry.shape.count()))
        throw std::logic_error("an array has more or fewer elements than its shape");
      if (!file.safetensors_type(entry).empty()) file.read_bytes(entry);
    }
  });
}
