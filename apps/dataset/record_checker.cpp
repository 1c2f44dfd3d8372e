#include "apps/dataset/record_checker.h"

#include "dtrain/core/error.h"

namespace dtrain::dataset {

PixelFaults RecordChecker::check(std::span<const std::byte> record) {
  example_.parse(record);
  const data::Feature* objects = example_.find("image/object/class/label");
  const size_t boxes = boxes_.read(example_).size();
  if (objects == nullptr || example_.find("image/class/label") != nullptr) {
    example_.int64("image/class/label");
  } else if (objects->count != boxes) {
    throw Error(Fault::data, concat(objects->count, " labels in image/object/class/label, ", boxes, " boxes"));
  } else {
    const data::DetectionRecord& image = detection_.read(record);
    for (data::DetectionRecord::Object object : image.objects) {
      data::segmentation_of(object, image.height, image.width);
      object.segmentation = {};  // the PNG, which other readers use
      data::segmentation_of(object, image.height, image.width);
    }
  }
  decoder_.open(std::as_bytes(std::span(example_.bytes("image/encoded"))));
  decoder_.decode();
  return {decoder_.damage(), decoder_.warning()};
}

}  // namespace dtrain::dataset
