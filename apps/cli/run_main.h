// The frame of every program: errors to one line and an exit code, and stopping on request.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
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

// From now on the first SIGTERM, SIGINT or SIGUSR1 only makes stop_requested() true, and a second one ends the process
// at once with 128 + the signal's number. A launcher may pass one request on more than once: one of several ranks takes
// those of 2 seconds as one. To be called before other threads are started.
void catch_stop_signals();
// From now on they are without effect: what was asked for has been done, and the process is about to end.
void ignore_stop_signals();
bool stop_requested();
// Returns once there has been a request.
void wait_for_stop_request();
// None without a request.
std::optional<std::chrono::nanoseconds> time_since_stop_request();
// Ends the process by the signal that asked it to stop, once it has tidied up.
[[noreturn]] void end_by_signal();

// The version of this build, e.g. "0.1.0".
std::string version();

}  // namespace dtrain::cli
