// Sleeps of this process. While it is stopped by a signal, or its machine is suspended, it waits for nobody, and its
// peers may sleep as well: once it wakes, each limit on waiting for them begins anew.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace dtrain {

using SteadyTime = std::chrono::steady_clock::time_point;

// Finds sleeps by looks at the clocks, several in a second.
class SleepDetector {
 public:
  // Since when the process has been awake. `suspended`: how long its machine has slept in all.
  SteadyTime look(SteadyTime now, std::chrono::nanoseconds suspended);

 private:
  SteadyTime looked_{}, awake_since_{};
  std::chrono::nanoseconds suspended_{};
};

// Since when this process has been awake. The first call starts a thread that looks at the clocks.
SteadyTime awake_since();
// Seconds from `begun`, or from when this process last woke where that was later, until now.
double waited_since(SteadyTime begun);
// Waits until `done`, up to so many seconds in which this process is awake; what `done` says.
bool wait_awake(std::condition_variable& condition, std::unique_lock<std::mutex>& lock, double limit,
                const std::function<bool()>& done);

}  // namespace dtrain
