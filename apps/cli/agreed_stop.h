// Stop requests that all ranks of a job obey together.
#pragma once

#include <chrono>
#include <functional>

#include "dtrain/distributed/group.h"

namespace dtrain::cli {

// Waits until the timeout on any rank, or a stop request on any rank: then true. Collective.
bool stopped_within(Group& group, std::chrono::seconds interval);

// Opens data, which may take long: false after a stop request on any rank, which `open` may report as an Error.
// Collective.
bool open_unless_stopped(Group& group, const std::function<void()>& open);

}  // namespace dtrain::cli
