// ImagenetDataset: classification from TFRecords in the ImageNet schema, in which other data sets are stored as well.
//   read: image/encoded (an image of any ImageFormat), image/class/label, image/object/bbox/{xmin,ymin,xmax,ymax}
//   (optional)
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/preprocess.h"
#include "data/record_shards.h"

namespace dtrain::data {

class Example;

// The image/object/bbox lists of records, one after another.
class BoxReader {
 public:
  // None where there are no lists. Throws Error(Fault::data) where the lists disagree or a box is not one. Valid until
  // the next call.
  const std::vector<Box>& read(const Example& example);

 private:
  std::vector<float> ymin_, xmin_, ymax_, xmax_;
  std::vector<Box> boxes_;
};

// The layout of labelled images: "images", [height, width, channels] each, then "labels", i32, -1 where a row holds no
// sample.
BatchLayout labelled_images(const Shape& image, DType dtype);

struct ImagenetOptions {
  std::string directory{};
  std::string split = "train";  // or "validation": the files SPLIT-*-of-*
  int64_t classes = 1001;       // ImageNet's stored labels run from 1 to 1000
  int64_t label_offset = 0;     // added to a stored label; the sum must lie in [0, classes)
  CacheOptions cache{};
};

// Rows are labelled_images of what the preprocessing makes.
class ImagenetDataset final : public Dataset {
 public:
  // Throws Error(Fault::data): no shards, one missing, one unreadable; Error where there is no preprocessing.
  // Without `make_defer` nothing can be left to a device.
  ImagenetDataset(const ImagenetOptions& options, MakePreprocess make_preprocess, MakeDefer make_defer = {});

  const BatchLayout& layout() const override { return layout_; }
  uint64_t size() const override { return shards_.size(); }
  const std::vector<uint64_t>& shard_begins() const override { return shards_.begins(); }
  RecordLocation locate(uint64_t record) const override { return shards_.locate(record); }
  const std::vector<std::string>& faults() const override { return shards_.faults(); }
  std::string identity() const override { return shards_.identity(); }
  std::string contents() const override { return shards_.contents(); }
  std::unique_ptr<SampleReader> reader() const override;

 private:
  class Reader;
  RecordShards shards_;
  int64_t classes_, label_offset_;
  BatchLayout layout_;
  MakePreprocess make_preprocess_;
  MakeDefer make_defer_;
};

}  // namespace dtrain::data
