// ImagenetDataset: classification from TFRecords in the ImageNet schema, also used for other data sets.
//   read: image/encoded (any ImageFormat), image/class/label, image/object/bbox/{xmin,ymin,xmax,ymax} (optional)
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dtrain/data/preprocess.h"
#include "dtrain/data/record_shards.h"

namespace dtrain::data {

class Example;

// Reader of the image/object/bbox lists of records.
class BoxReader {
 public:
  // Empty without lists. Throws Error(Fault::data) for lists of different lengths and invalid boxes. Valid until the
  // next call.
  const std::vector<NormalizedBox>& read(const Example& example);

 private:
  std::vector<float> ymin_, xmin_, ymax_, xmax_;
  std::vector<NormalizedBox> boxes_;
};

// Layout of labelled images: "images" [height, width, channels], then "labels" i32, -1 for padding.
BatchLayout labelled_images(const Shape& image, DType dtype);

// Layout of images with any number of labels: "images", then "targets" f32 [classes], 1 for a label of the image and
// else 0, and "row_weights" f32, 1 for an image and 0 for padding.
BatchLayout multi_labelled_images(const Shape& image, DType dtype, int64_t classes);

struct ImagenetOptions {
  std::string directory{};
  std::string split = "train";  // or "validation": the files SPLIT-*-of-*
  int64_t classes = 1001;       // ImageNet stores labels 1 to 1000
  int64_t label_offset = 0;     // added to a stored label; the sum must lie in [0, classes)
  CacheOptions cache{};
};

// Rows have the layout labelled_images with the shape of the preprocessing.
class ImagenetDataset final : public Dataset {
 public:
  // Throws Error(Fault::data) for missing or unreadable shards, Error without preprocessing.
  ImagenetDataset(const ImagenetOptions& options, PreprocessorFactory preprocessors);

  const BatchLayout& layout() const override { return layout_; }
  uint64_t size() const override { return shards_.size(); }
  const std::vector<uint64_t>& shard_begins() const override { return shards_.begins(); }
  RecordLocation locate(uint64_t record) const override { return shards_.locate(record); }
  const std::vector<std::string>& faults() const override { return shards_.faults(); }
  std::string identity() const override { return shards_.identity(); }
  std::string contents() const override { return shards_.contents(); }
  void prefetch(uint64_t record) const override { shards_.prefetch(record); }
  bool can_prefetch() const override { return shards_.can_prefetch(); }
  std::unique_ptr<SampleReader> reader() const override;

 private:
  class Reader;
  RecordShards shards_;
  int64_t classes_, label_offset_;
  BatchLayout layout_;
  PreprocessorFactory preprocessors_;
};

}  // namespace dtrain::data
