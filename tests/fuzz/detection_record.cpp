// Object detection records and their masks.
#include "data/detection_record.h"

#include "data/detection_masks.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  static data::DetectionRecordReader reader;
  return fuzz::expect(Fault::data, [&] {
    const data::DetectionRecord& image = reader.read(std::as_bytes(std::span(data, size)));
    std::vector<int32_t> ends;
    for (data::DetectionRecord::Object object : image.objects)
      for (int form = 0; form < 2; ++form, object.segmentation = {})
        data::append_runs({.box = object.box, .segmentation = data::segmentation_of(object, image.height, image.width)},
                          {{image.height, image.width}, {20, 24}, true}, ends);
  });
}
