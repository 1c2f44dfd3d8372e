// Images of detection records.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/dataset/writing.h"
#include "dtrain/data/detection_source.h"
#include "dtrain/data/image.h"

namespace dtrain::dataset {

// Counts for the notices after a conversion.
struct Notices {
  KeptWarnings warnings{};
  std::atomic<uint64_t> turned{0};
};

// An image for a record, decoded once as a check. JPEG and PNG files are stored unchanged. Other formats, which not
// every reader supports, are encoded as JPEG, and so are images whose annotations refer to the EXIF-rotated size,
// because readers of records rely on the stored size.
class StoredImage {
 public:
  // `annotations`: their file or folder, for messages. Throws Error(Fault::data) for a damaged image or another size
  // than the annotations have.
  StoredImage(const data::DetectionSample& sample, const std::string& annotations);

  std::span<const std::byte> bytes() const { return bytes_; }
  const char* format() const { return is_png_ ? "png" : "jpeg"; }
  bool is_turned() const { return is_turned_; }
  const std::string& warning() const { return decoder_.warning(); }

 private:
  std::span<const std::byte> bytes_;
  std::vector<std::byte> jpeg_;
  data::ImageDecoder decoder_;
  bool is_png_ = false, is_turned_ = false;
};

}  // namespace dtrain::dataset
