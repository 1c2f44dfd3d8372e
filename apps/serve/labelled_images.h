// A validation set that people look through: images in files with what is known of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/serve/session.h"
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

// With `annotations`, a file of COCO's form, its images below `folder`. Without, all files in
// folder/CLASS/ whose names end as those of images do, in their order. Throws Error(Fault::data) where there are none.
std::vector<LabelledImage> read_labelled_images(const std::string& folder, const std::string& annotations);

// The same. Where there is a classifier, it throws for images without a label, too, and prints by what those that have
// one got it, unless it is the model's names of classes.
std::vector<LabelledImage> read_labelled_images(const std::string& folder, const std::string& annotations,
                                                const Session* session);

// The bytes of its file. Throws Error(Fault::data) where they are more than `most`, or cannot be read; its message has
// the image's name in place of the path, for clients.
std::string read_image(const LabelledImage& image, size_t most);

// Which output of a model the images of a folder belong to: that of the folder's name, where it is among the model's
// names of classes, else the output whose number the folder is called by. For a model without names: the number that
// the folder is called by, where all folders are called by numbers of outputs; else the place of the folder among all
// in the order of their names, from 1 on, as dtrain-data numbers them.
class LabelRule {
 public:
  // `names` of the model's classes, by output, outlive this; there are `outputs` of them, or none.
  LabelRule(std::span<const std::string> names, int64_t outputs, const std::vector<LabelledImage>& images);

  // None where the model has no such class.
  std::optional<int64_t> label_of(const LabelledImage& image) const;
  // Throws Error(Fault::data) naming the folder of an image that has no label.
  void require_labels(const std::vector<LabelledImage>& images) const;
  // What decides on the labels where that is not the model's names; "" where they do.
  std::string notice() const;

 private:
  enum class Folders { named, numbers, places };
  // The number that the folder is called by, where the model has such an output.
  std::optional<int64_t> number_of(const LabelledImage& image) const;

  int64_t outputs_;
  Folders folders_ = Folders::named;
  std::map<std::string_view, int64_t> by_name_;
};

}  // namespace dtrain::serve
