// Stop requests: signals that set a flag.
#pragma once

#include <chrono>
#include <csignal>
#include <optional>

namespace dtrain::cli {

// Signals that request a stop: SIGTERM, SIGINT and SIGUSR1, from users and launchers; and SIGHUP (lost terminal or ssh
// session), SIGUSR2 and SIGXCPU (batch systems, before a limit), unless one of these three was ignored at process
// start, e.g. by nohup.
sigset_t stop_signals();

// Installs the handling: the first signal only makes stop_requested() true. A second SIGTERM, SIGINT or SIGUSR1 ends
// the process at once with 128 + signal number; repeated other signals are ignored. Launchers may forward one request
// several times, so one of several ranks merges signals within 2 seconds. Call before starting threads.
void catch_stop_signals();
// Ignores further stop signals: the process is about to exit.
void ignore_stop_signals();
bool stop_requested();
// Waits for a stop request.
void wait_for_stop_request();
// None before a request.
std::optional<std::chrono::nanoseconds> time_since_stop_request();
// Ends the process by the signal that requested the stop, after clean-up.
[[noreturn]] void end_by_signal();

}  // namespace dtrain::cli
