// Class lists and label files.
#include "data/label_file.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  const std::string path = fuzz::file_of("labels.txt", fuzz::text_of(data, size));
  const std::vector<std::string> known = {"n01", "sea lion"};
  fuzz::expect(Fault::data, [&] { data::read_class_list(path, known); });
  return fuzz::expect(Fault::data, [&] {
    std::vector<data::TreeImage> images(2);
    images[0].filename = "1.JPEG";
    images[1].filename = "2.JPEG";
    data::label_by_lines(images, known, 1, path, "val");
  });
}
