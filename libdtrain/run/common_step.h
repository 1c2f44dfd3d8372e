// Checkpoints on per-host storage: the newest step available on all hosts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "dtrain/distributed/group.h"

namespace dtrain {

// Whether this rank writes checkpoints: the chief, and with `per_host` also the first rank of each other host.
bool writes_checkpoints(const Group& group, int chief, bool per_host);

// Newest step of which each writer has a valid checkpoint; nullopt if no writer has any. `own`: steps on this rank's
// disk, ascending; nullopt if it writes none. `is_sound` verifies one and reports defects itself. Throws
// Error(Fault::checkpoint) on every rank, listing who has which, if there is no common one. Collective.
std::optional<uint64_t> newest_common_step(Group& group, std::optional<std::vector<uint64_t>> own,
                                           const std::function<bool(uint64_t step)>& is_sound);

}  // namespace dtrain
