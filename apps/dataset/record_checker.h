// Checks what training relies on in a record.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "data/detection_record.h"
#include "data/image.h"
#include "data/imagenet.h"

namespace dtrain::dataset {

// What an image has lost, or else what its decoder warns of.
struct PixelFaults {
  std::string damage{}, warning{};
};

// The label of a classified image or those of an image's objects, boxes, masks, and pixels. For one thread.
class RecordChecker {
 public:
  // Throws Error(Fault::data).
  PixelFaults check(std::span<const std::byte> record);

 private:
  data::Example example_;
  data::BoxReader boxes_;
  data::DetectionRecordReader detection_;
  data::ImageDecoder decoder_;
};

}  // namespace dtrain::dataset
