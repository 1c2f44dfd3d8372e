// Validation set of the page: image files with labels or annotations.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/serve/session.h"
#include "dtrain/data/coco/rle.h"

namespace dtrain::serve {

struct LabelledImage {
  struct Object {
    data::coco::BoundingBox box{};
    int64_t category_id = 0;
  };
  std::string path{}, name{};     // name relative to the folder
  std::string class_name{};       // of its folder; empty with annotations
  int64_t place = 0;              // index of the folder, from 1
  std::vector<Object> objects{};  // annotated objects without crowds
};

// With `annotations`, a COCO file: its images below `folder`. Without: all files in folder/CLASS/ with an image
// extension, sorted. Throws Error(Fault::data) if there are none.
std::vector<LabelledImage> read_labelled_images(const std::string& folder, const std::string& annotations);

// The same. For a classifier, also throws for images without a label, and prints the source of labels unless it is the
// model's class names.
std::vector<LabelledImage> read_labelled_images(const std::string& folder, const std::string& annotations,
                                                const Session* session);

// Reads its file. Throws Error(Fault::data) if it exceeds `most` bytes or cannot be read; the message, for clients, has
// the image's name instead of the path.
std::string read_image(const LabelledImage& image, size_t most);

// Label of a folder's images as an output of the model: the class with the folder's name, else the output with the
// folder's number. For a model without class names: the folder's number, if all folders are numbers of outputs; else
// the folder's index in sorted order, from 1, as in dtrain-data.
class LabelRule {
 public:
  // `names`: class names by output, which outlive this; `outputs` of them, or none.
  LabelRule(std::span<const std::string> names, int64_t outputs, const std::vector<LabelledImage>& images);

  // None if the model has no such class.
  std::optional<int64_t> label_of(const LabelledImage& image) const;
  // Throws Error(Fault::data) naming the folder of an image without a label.
  void require_labels(const std::vector<LabelledImage>& images) const;
  // Source of the labels, if not the model's class names; else "".
  std::string notice() const;

 private:
  enum class Folders { named, numbers, places };
  // The folder's name as a number, if the model has such an output.
  std::optional<int64_t> number_of(const LabelledImage& image) const;

  int64_t outputs_;
  Folders folders_ = Folders::named;
  std::map<std::string_view, int64_t> by_name_;
};

}  // namespace dtrain::serve
