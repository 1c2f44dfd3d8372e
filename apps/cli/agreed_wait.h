// Waits that all ranks of a job end together.
#pragma once

#include <chrono>

#include "libdtrain/distributed/group.h"

namespace dtrain::cli {

// Waits until the time is over on one rank, or a request to stop has reached one: then true. Collective.
bool stopped_within(Group& group, std::chrono::seconds interval);

}  // namespace dtrain::cli
