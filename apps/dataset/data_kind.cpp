#include "apps/dataset/data_kind.h"

#include "data/coco_layout.h"
#include "data/labelled_source.h"

namespace dtrain::dataset {

bool is_labelled(const std::string& data, const AnnotationFlags& flags) {
  if (flags.from != "coco" || !data::coco_splits(data).empty()) return false;
  return data::has_labelled_images(data, true) || data::has_labelled_images(data, false);
}

}  // namespace dtrain::dataset
