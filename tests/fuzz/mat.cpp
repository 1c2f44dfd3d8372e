// MAT-files.
#include "data/mat_file.h"

#include <array>

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  const std::array<std::string, 2> fields = {"ILSVRC2012_ID", "WNID"};
  return fuzz::expect(Fault::data,
                      [&] { data::read_mat_structs(fuzz::text_of(data, size), "a.mat", "synsets", fields); });
}
