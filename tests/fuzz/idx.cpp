// IDX files, plain and gzip.
#include "dtrain/data/idx.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  return fuzz::expect(Fault::data, [&] {
    const data::IdxArray array = data::read_idx(fuzz::file_of("a-idx3-ubyte", fuzz::text_of(data, size)));
    for (uint64_t i = 0; i < array.items() && array.item_bytes() > 0; ++i)
      if (array.item(i).size() != array.item_bytes()) std::abort();
  });
}
