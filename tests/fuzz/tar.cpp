// Tar archives, also nested.
#include "data/image_tar.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  return fuzz::expect(Fault::data, [&] {
    for (const data::TreeImage& image : data::images_of_tar(fuzz::file_of("a.tar", fuzz::text_of(data, size)))) {
      std::string bytes(image.bytes, '\0');
      image.archive->read(image.offset, bytes.data(), bytes.size());
    }
  });
}
