// NumPy .npz archives.
#include "dtrain/io/npz.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  return fuzz::expect(Fault::data, [&] {
    const NpzFile file(fuzz::file_of("weights.npz", fuzz::text_of(data, size)));
    for (const NpzEntry& entry : file.entries()) file.read(entry);
  });
}
