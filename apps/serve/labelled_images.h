// A validation set that people look through: images in files with what is known of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/coco/rle.h"

namespace dtrain::serve {

struct LabelledImage {
  struct Object {
    data::coco::Box box{};
    int64_t category_id = 0;
  };
  std::string path{}, name{};     // the name is that below the folder
  std::string class_name{};       // that of its folder; empty where there are annotations
  int64_t place = 0;              // of the folder among all, from 1 on
  std::vector<Object> objects{};  // those of the annotations that are no crowds
};

// With `annotations`, a file of COCO's form, its images below `folder`. Without, all JPEG and PNG files in
// folder/CLASS/, in the order of their names. Throws Error(Fault::data) where there are none.
std::vector<LabelledImage> read_labelled_images(const std::string& folder, const std::string& annotations);

// Which output of a model the images of a folder belong to: that of the folder's name, where it is among the model's
// names of classes; else the number that the folder is called by; else, for a model without names, the place of the
// folder among all in the order of their names, from 1 on, as dtrain-data numbers them.
class LabelRule {
 public:
  // `names` of the model's classes, by output, outlive this.
  explicit LabelRule(std::span<const std::string> names);

  // None where a model with names has no such class.
  std::optional<int64_t> label_of(const LabelledImage& image) const;
  // Throws Error(Fault::data) naming the folder of an image that has no label, though a model with names is there.
  void require_labels(const std::vector<LabelledImage>& images) const;
  // Whether images have labels by the order of their folders.
  bool counts_folders(const std::vector<LabelledImage>& images) const;

 private:
  std::span<const std::string> names_;
  std::map<std::string_view, int64_t> by_name_;
};

}  // namespace dtrain::serve
