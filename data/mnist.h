// MNIST and Fashion-MNIST: two IDX files a split, grey images and their classes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/idx.h"

namespace dtrain::data {

// A split's images [count, height, width] and labels [count].
struct MnistSplit {
  IdxArray images, labels;
};

// The files train-images-idx3-ubyte and train-labels-idx1-ubyte of `directory`, t10k-* where `training` is false, or
// those of its folder raw, where torchvision keeps them. Either may end in .gz, and the dash before idx may be a dot.
// Throws Error(Fault::data) naming the file and the offset where one is missing or is not what it should be.
MnistSplit read_mnist(const std::string& directory, bool training);
// Whether read_mnist() finds a file of images of either split.
bool has_mnist(const std::string& directory);
// Checks labels that are read for themselves: they count from 0 to 9, and the file of images beside them, where there
// is one, has as many. Throws Error(Fault::data).
void check_labels_of(const IdxArray& labels);

struct MnistOptions {
  std::string directory{};
  bool training = true;
  int64_t classes = 10;
  int64_t label_offset = 0;  // added to a stored label; the sum must lie in [0, classes)
  int size = 28;             // height and width of a sample
};

// Rows are labelled_images: pixels f32 in [0, 255], each grey level three times, as models of coloured images take
// them; no augmentation. All of the files is in memory.
class MnistDataset final : public Dataset {
 public:
  // Throws as read_mnist does, and Error(Fault::data) where a label is out of range or there is no image.
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
  std::vector<std::string> faults_{};  // none: a bad file is not opened
};

}  // namespace dtrain::data
