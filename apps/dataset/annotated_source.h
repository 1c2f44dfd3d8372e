// Splits of a detection data set in COCO's format or that of an annotation tool, as sources of images.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "data/annotations/label_set.h"
#include "dtrain/data/detection_source.h"

namespace dtrain::dataset {

struct AnnotatedSource {
  std::string name{};         // "train", "val" or "test"
  std::string annotations{};  // their file or folder, for messages
  std::string images{};       // folder of the images
  std::shared_ptr<const data::DetectionSource> source{};
  std::vector<data::BadRecord> unusable{};  // images known to be missing or unreadable
};

// Flags of the formats.
struct AnnotationFlags {
  std::string from = "coco", year, classes, voc_boxes = "inclusive", difficult = "crowd";
  bool strict = false, masks = true;

  void declare(cli::FlagSet& flags);
  // Opens all splits in `input`, with notices about unusable objects. Throws Error(Fault::data) if there are none, and
  // with `strict` for unusable objects.
  std::vector<AnnotatedSource> open(const std::string& input, int64_t threads) const;

 private:
  std::vector<AnnotatedSource> open_coco(const std::string& input) const;
  std::vector<AnnotatedSource> open_labels(const std::string& input, int64_t threads) const;
  data::annotations::LabelOptions label_options() const;
};

}  // namespace dtrain::dataset
