// Which categories of a file are a detector's classes.
#pragma once

#include <string>
#include <vector>

#include "data/coco/annotations.h"

namespace dtrain::detection {

struct CategoryMatch {
  // Names by which the file is read again so that its categories are in the order of the classes; empty where they are.
  std::vector<std::string> classes{};
  std::string notice{};  // for people; empty where all agrees
};

// `found` are the categories of the file `path`, `learnt` those of the detector, in the order of its classes. They are
// matched by their names, which the order of ids need not follow, or by ids where there are no names or a name is there
// twice. Throws Error(Fault::data) where they are not the same, with the first two that differ.
CategoryMatch match_categories(const std::vector<data::coco::Category>& found,
                               const std::vector<data::coco::Category>& learnt, const std::string& path);

// The categories that the classes of the weights in the file `weights` stand for: those of COCO's annotations
// `annotations`, or of these the ones with the names `classes`, in the order that the weights have recorded; what they
// have recorded where `annotations` is empty. Appends to `notices` what match_categories() says. Throws what that and
// reading the annotations do.
std::vector<data::coco::Category> known_categories(const std::string& weights, const std::string& annotations,
                                                   const std::vector<std::string>& classes,
                                                   std::vector<std::string>& notices);

}  // namespace dtrain::detection
