// Lists of skipped images, and their round trip.
#include <stdexcept>

#include "dtrain/data/bad_record.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  return fuzz::expect(Fault::data, [&] {
    const data::SkippedRecords skipped = data::read_skipped(fuzz::file_of("skipped.json", fuzz::text_of(data, size)));
    if (data::read_skipped(fuzz::file_of("again.json", data::to_json(skipped))) != skipped)
      throw std::logic_error("a list of skipped images is not the same after it was written");
  });
}
