// Consistency check of settings across ranks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dtrain/distributed/group.h"

namespace dtrain {

// Key and value, in the same order on all ranks: the first difference is reported.
using RankSettings = std::vector<std::pair<std::string, std::string>>;

// First differing lines of two multi-line texts; "nothing" where one has ended.
std::pair<std::string, std::string> first_difference(const std::string& a, const std::string& b);

// Throws Error(Fault::config) on all ranks if a value differs from rank 0's: names the first such key, both values or
// their first differing lines, and the ranks. `what`: name of the settings in reports. Collective.
void check_equal(Group& group, const RankSettings& mine, const char* what);

}  // namespace dtrain
