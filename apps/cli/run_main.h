// main() wrapper of every program: turns errors into one line and an exit code.
#pragma once

#include <functional>
#include <string>

namespace dtrain::cli {

// Exit code of a run that stopped on request after a checkpoint and can be resumed. The other codes are the values of
// Fault.
inline constexpr int kStopped = 75;

// Runs `body` and returns its result, or prints `error: ...` on stderr and returns the documented exit code, even if
// the line cannot be written. One of several ranks names itself: `error: rank 3 on host-b: ...`. Replaces closed
// standard descriptors by /dev/null. Turns SIGPIPE and SIGXFSZ into write errors. An uncaught exception of any thread
// ends the process in the same way.
int run_main(const std::function<int()>& body);

// The version of this build, e.g. "0.1.0".
std::string version();

}  // namespace dtrain::cli
