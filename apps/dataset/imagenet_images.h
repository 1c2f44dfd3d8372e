// Which images dtrain-data imagenet converts: of folders, or of ImageNet's archives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/dataset/writing.h"
#include "data/image_tree.h"

namespace dtrain::dataset {

using Images = std::vector<data::TreeImage>;

struct ImagenetFlags {
  CommonFlags common;
  std::string train_tar, val_tar, labels, validation_labels, bounding_boxes;
  int64_t shards = 1024, validation_shards = 0;

  void declare(cli::FlagSet& flags);
  // Kaggle's folders of the ImageNet challenge: the images lie deeper, the files of labels above them.
  void take_kaggle_layout();
  bool has_tars() const { return !train_tar.empty() || !val_tar.empty(); }

  // Throws Error for flags that do not go together.
  void check() const;
};

// What is to be converted; a split without images is not.
struct Splits {
  std::string train_place, validation_place;
  Images train{}, validation{};
  std::vector<std::string> classes{};
  std::vector<std::string> titles{};  // the classes with their descriptions, where --labels has some; else none
};

// Lists all images, with the labels of their classes, before anything is written. Notices what is left out. Throws
// Error(Fault::data) for images and files of labels that do not go together.
Splits list_images(const ImagenetFlags& flags);

}  // namespace dtrain::dataset
