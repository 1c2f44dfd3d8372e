// Making sure that the ranks of a job were started alike.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "libdtrain/distributed/group.h"

namespace dtrain {

// By key, in an order that is the same on all ranks: what differs first is reported.
using RankSettings = std::vector<std::pair<std::string, std::string>>;

// The first lines in which texts of several lines differ; "nothing" where one has ended.
std::pair<std::string, std::string> first_difference(const std::string& a, const std::string& b);

// Throws Error(Fault::config) on all ranks where one has another value than the first rank: it names the first such
// key, both values, or the first lines in which they differ, and the ranks that have them. `what` names these settings
// in reports. Collective.
void check_equal(Group& group, const RankSettings& mine, const char* what);

}  // namespace dtrain
