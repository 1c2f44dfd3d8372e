// Matches a file's categories to a detector's classes.
#pragma once

#include <string>
#include <vector>

#include "dtrain/data/coco/annotations.h"

namespace dtrain::detection {

struct CategoryMatch {
  // Category names in class order, to reread the file with; empty if it is already in order.
  std::vector<std::string> classes{};
  std::string notice{};  // notice; empty if all agrees
};

// `found`: categories of the file `path`; `learnt`: of the detector, in class order. Matches by name in any order, or
// by id if names are missing or not unique. Throws Error(Fault::data) with the first difference if they do not match.
CategoryMatch match_categories(const std::vector<data::coco::Category>& found,
                               const std::vector<data::coco::Category>& learnt, const std::string& path);

// Categories of the classes of `weights`: from the COCO annotations `annotations` (only the names `classes`, if given),
// in the order recorded with the weights; or as recorded, if `annotations` is empty. Appends notices of
// match_categories(). Throws like match_categories() and the annotation reader.
std::vector<data::coco::Category> known_categories(const std::string& weights, const std::string& annotations,
                                                   const std::vector<std::string>& classes,
                                                   std::vector<std::string>& notices);

}  // namespace dtrain::detection
