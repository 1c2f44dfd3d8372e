// Brace expansion of paths, as in shells and the package `braceexpand`.
#pragma once

#include <string>
#include <vector>

namespace dtrain::data {

// Expands {0007..0146}, whose numbers keep leading zeros, {a..c}, {0..8..2} with a step, and {a,b}; several groups give
// all combinations, the last one changing fastest. A text without such a group is its only expansion. Throws
// Error(Fault::data) for more than a million expansions and for braces that are nested or without partner.
std::vector<std::string> expand_braces(const std::string& pattern);

}  // namespace dtrain::data
