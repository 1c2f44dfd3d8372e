// Class-name files beside shards.
#include "dtrain/data/class_names.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  return fuzz::expect(Fault::data, [&] {
    const data::ClassNames names = data::class_names_from(fuzz::text_of(data, size), "classes.txt");
    if (data::class_names_from(data::to_text(names), "again") != names) std::abort();
  });
}
