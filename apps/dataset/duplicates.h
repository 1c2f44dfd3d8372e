// Images with equal bytes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dtrain::dataset {

struct DuplicateImages {
  std::vector<std::string> files{};
  bool in_several_splits = false;
  bool in_several_classes = false;  // of classification data
};

// Groups of several splits first, then of several classes, each sorted by file.
void sort_duplicates(std::vector<DuplicateImages>& duplicates);

// Counts, then at most `examples` groups, one per line. `has_classes`: whether to count groups of several classes.
std::string duplicates_text(const std::vector<DuplicateImages>& duplicates, size_t examples, bool has_classes);
// [{"files", "in_several_splits", "in_several_classes"}, ...]; the last only with `has_classes`.
nlohmann::ordered_json duplicates_json(const std::vector<DuplicateImages>& duplicates, bool has_classes);

}  // namespace dtrain::dataset
