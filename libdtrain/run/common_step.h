// The checkpoints of a job that has no file system in common: each host has its own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "libdtrain/distributed/group.h"

namespace dtrain {

// Whether this rank writes checkpoints: the chief, and with one writer per host also the first rank of each other host.
bool writes_checkpoints(const Group& group, int chief, bool per_host);

// The newest step of which each writer has a sound checkpoint; nothing where no writer has any checkpoint. `own`: the
// steps on the disk of this rank, ascending; nothing where it writes none. `is_sound` looks at one of them, and says
// itself what is wrong with it. Throws Error(Fault::checkpoint) that tells who has which where none is common to all,
// on every rank. Collective.
std::optional<uint64_t> newest_common_step(Group& group, std::optional<std::vector<uint64_t>> own,
                                           const std::function<bool(uint64_t step)>& is_sound);

}  // namespace dtrain
