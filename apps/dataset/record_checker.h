// Validates the parts of a record that training uses.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "data/detection_record.h"
#include "dtrain/data/image.h"
#include "dtrain/data/imagenet.h"

namespace dtrain::dataset {

// Damage of an image, or else its decoder's warning.
struct PixelFaults {
  std::string damage{}, warning{};
};

// Checks the label, or the object labels, and boxes, masks and pixels. Not thread-safe.
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
