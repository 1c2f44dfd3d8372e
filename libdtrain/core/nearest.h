// Suggestions for mistyped names, by edit distance.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

// Damerau-Levenshtein distance: insertions, deletions, substitutions, transpositions.
int edit_distance(std::string_view a, std::string_view b);

// Nearest candidate, the first of equals; nullopt if none is close.
std::optional<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace dtrain
