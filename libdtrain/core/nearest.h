// What a mistyped name was probably meant to be.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
int edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `name`, the first of several; nothing where even that one is far off.
std::optional<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace dtrain
