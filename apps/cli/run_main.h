// The frame of every program: errors to one line and an exit code.
#pragma once

#include <functional>
#include <string>

namespace dtrain::cli {

// Exit code of a run that stopped after a checkpoint because it was asked to; starting it again continues it. The other
// codes are the values of Fault.
inline constexpr int kStopped = 75;

// Opens /dev/null in the place of standard descriptors that are closed, runs `body` and returns its result, or prints
// `error: ...` on stderr and returns the documented code of the failure, whether that line can be written or not. One
// of several ranks says which: `error: rank 3 on host-b: ...`. From now on writing to a closed pipe, or beyond the
// limit of a file, is an error like any other, and an exception that leaves any thread ends the process in this way.
int run_main(const std::function<int()>& body);

// The version of this build, e.g. "0.1.0".
std::string version();

}  // namespace dtrain::cli
