#include "apps/cli/stop_signals.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include <unistd.h>

#include "apps/cli/ranks.h"
#include "dtrain/core/error.h"

namespace dtrain::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Static, because a thread that is never joined sets it.
std::atomic<int> stop_signal = 0;
std::atomic<Clock::time_point> stop_time;  // time of the first signal; written before stop_signal
std::atomic<bool> ignored = false;

constexpr std::array kRequests = {SIGTERM, SIGINT, SIGUSR1};
constexpr std::array kNotices = {SIGHUP, SIGUSR2, SIGXCPU};

bool is_ignored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

[[noreturn]] void wait_for_stop_signals(bool one_request_repeats) {
  constexpr std::chrono::seconds kOneRequest{2};
  const sigset_t set = stop_signals();
  std::optional<Clock::time_point> asked;  // time of the first of kRequests
  while (true) {
    int number = 0;
    if (sigwait(&set, &number) != 0 || ignored) continue;
    const Clock::time_point now = Clock::now();
    if (stop_signal == 0) {
      stop_time = now;
      stop_signal = number;
    }
    if (std::ranges::find(kRequests, number) == kRequests.end()) continue;
    if (asked && (!one_request_repeats || now - *asked > kOneRequest)) _exit(128 + number);
    if (!asked) asked = now;
  }
}

}  // namespace

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kRequests) sigaddset(&set, number);
  for (const int number : kNotices)
    if (!is_ignored(number)) sigaddset(&set, number);
  return set;
}

// Signal handlers must not interrupt compute threads: oneDNN's GEMM temporarily points the stack pointer into the heap,
// and the kernel's signal frame would overwrite other heap blocks. So the signals are blocked in this and all later
// threads, and a dedicated thread waits for them.
void catch_stop_signals() {
  const sigset_t set = stop_signals();
  if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) throw Error(Fault::resource, "cannot block signals");
  std::thread(wait_for_stop_signals, !rank_name().empty()).detach();
}

void ignore_stop_signals() { ignored = true; }

bool stop_requested() { return stop_signal != 0; }

void wait_for_stop_request() {
  while (!stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

std::optional<std::chrono::nanoseconds> time_since_stop_request() {
  if (!stop_requested()) return std::nullopt;
  return Clock::now() - stop_time.load();
}

void end_by_signal() {
  const int number = stop_signal;
  const sigset_t set = stop_signals();
  std::signal(number, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  std::raise(number);
  _exit(128 + number);
}

}  // namespace dtrain::cli
