// MNIST and Fashion-MNIST: two IDX files per split with grey images and labels.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dtrain/data/dataset.h"
#include "dtrain/data/idx.h"

namespace dtrain::data {

// Images [count, height, width] and labels [count] of a split.
struct MnistSplit {
  IdxArray images, labels;
};

// Reads train-images-idx3-ubyte and train-labels-idx1-ubyte (t10k-* unless `training`) of `directory` or its folder raw
// (torchvision). Files may end in .gz and have a dot before idx. Throws Error(Fault::data) with file and offset for a
// missing or invalid file.
MnistSplit read_mnist(const std::string& directory, bool training);
// Whether read_mnist() would find an images file of either split.
bool has_mnist(const std::string& directory);
// Validates labels that are read without images: they lie in 0 to 9, and match the count of the images file beside
// them, if any. Throws Error(Fault::data).
void check_labels_of(const IdxArray& labels);

struct MnistOptions {
  std::string directory{};
  bool training = true;
  int64_t classes = 10;
  int64_t label_offset = 0;  // added to stored labels; the sum must lie in [0, classes)
  int size = 28;             // height and width of a sample, in pixels
};

// Rows have the layout labelled_images: f32 pixels in [0, 255], grey replicated to three channels, without
// augmentation. Keeps the files in memory.
class MnistDataset final : public Dataset {
 public:
  // Throws as read_mnist does, and Error(Fault::data) for a label out of range or no images.
  explicit MnistDataset(const MnistOptions& options);

  const BatchLayout& layout() const override { return layout_; }
  uint64_t size() const override { return split_.images.items(); }
  const std::vector<uint64_t>& shard_begins() const override { return begins_; }
  RecordLocation locate(uint64_t record) const override;
  const std::vector<std::string>& faults() const override { return faults_; }
  std::unique_ptr<SampleReader> reader() const override;
  std::string identity() const override;
  std::string contents() const override;

 private:
  class Reader;
  MnistSplit split_;
  int64_t label_offset_;
  int size_;
  BatchLayout layout_;
  std::vector<uint64_t> begins_;
  std::vector<std::string> faults_{};  // always empty: a damaged file is not opened
};

}  // namespace dtrain::data
