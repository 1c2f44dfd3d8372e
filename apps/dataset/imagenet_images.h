// Input images of dtrain-data imagenet, from folders or ImageNet's archives.
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
  // Kaggle's folder layout of the ImageNet challenge.
  void take_kaggle_layout();
  bool has_tars() const { return !train_tar.empty() || !val_tar.empty(); }

  // Throws Error for conflicting flags.
  void check() const;
};

// Images to convert; splits without images are skipped.
struct Splits {
  std::string train_place, validation_place;
  Images train{}, validation{};
  std::vector<std::string> classes{};
  std::vector<std::string> titles{};  // classes with descriptions from --labels, if any
};

// Lists all images with their labels. Prints notices about skipped files. Throws Error(Fault::data) if images and label
// files do not match.
Splits list_images(const ImagenetFlags& flags);

}  // namespace dtrain::dataset
