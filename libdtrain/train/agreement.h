// Making sure that the ranks of a job were started alike.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "libdtrain/distributed/group.h"

namespace dtrain {

// By key, in an order that is the same on all ranks: what differs first is reported.
using RankSettings = std::vector<std::pair<std::string, std::string>>;

// Throws Error(Fault::config) on all ranks where one has another value than the first rank: it names the first such
// key, both values and the ranks that have them. `what` names these settings in reports. Collective.
void check_equal(Group& group, const RankSettings& mine, const char* what);

}  // namespace dtrain
