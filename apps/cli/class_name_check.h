// Comparison of class names in data and weights.
#pragma once

#include <string>
#include <vector>

namespace dtrain::cli {

// Throws Error(Fault::data) for the first class of `data_dir`, by output, that the weights record under another name.
// The record "n01440764 tench" is the class n01440764: dtrain-data adds descriptions to WordNet's synsets.
void require_equal_names(const std::vector<std::string>& names, const std::string& data_dir,
                         const std::string& weights_file);

}  // namespace dtrain::cli
