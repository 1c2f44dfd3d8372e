// Requests to stop: signals to a flag.
#pragma once

#include <chrono>
#include <csignal>
#include <optional>

namespace dtrain::cli {

// The signals that request a stop: SIGTERM, SIGINT and SIGUSR1, sent by users and launchers; and SIGHUP (a lost
// terminal or ssh session), SIGUSR2 and SIGXCPU (batch systems, before a limit), unless one of these three was ignored
// when this process started, as nohup does with SIGHUP.
sigset_t stop_signals();

// From now on the first of them only makes stop_requested() true. A second SIGTERM, SIGINT or SIGUSR1 ends the process
// at once with 128 + the signal's number; systems repeat the others, which then change nothing. A launcher may pass one
// request on more than once: one of several ranks takes those of 2 seconds as one. To be called before other threads
// are started.
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

}  // namespace dtrain::cli
