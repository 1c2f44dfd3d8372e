#include "apps/cli/agreed_stop.h"

#include <thread>

#include "apps/cli/stop_signals.h"
#include "dtrain/run/evaluation.h"

namespace dtrain::cli {

bool stopped_within(Group& group, std::chrono::seconds interval) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  bool stopped = stop_agreed(group, stop_requested);
  const auto over = [&] { return Clock::now() - began >= interval ? 1 : 0; };
  while (!stopped && group.extremes(over(), "time to evaluate").second == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stopped = stop_agreed(group, stop_requested);
  }
  return stopped;
}

bool open_unless_stopped(Group& group, const std::function<void()>& open) {
  try {
    open();
  } catch (const Error&) {
    if (!stop_requested()) throw;
  }
  return !stop_agreed(group, stop_requested);
}

}  // namespace dtrain::cli
