// Calibration files for int8. Accepted input must be canonical: equal to its serialisation.
#include "dtrain/train/calibration_file.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  const std::string text = fuzz::text_of(data, size);
  return fuzz::expect(Fault::data, [&] {
    const Calibration calibration = load_calibration(fuzz::file_of("c.json", text));
    const std::string again = fuzz::folder() / "again.json";
    save_calibration(calibration, again);
    if (read_file(again) != text) std::abort();
  });
}
