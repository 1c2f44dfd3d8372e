// A wait that ends on all ranks of a job together.
#pragma once

#include <chrono>

#include "libdtrain/distributed/group.h"

namespace dtrain::cli {

// Waits until the timeout on any rank, or a stop request on any rank: then true. Collective.
bool stopped_within(Group& group, std::chrono::seconds interval);

}  // namespace dtrain::cli
