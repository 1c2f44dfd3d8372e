// Suspension of the process: time stopped by a signal (SIGSTOP) or in machine sleep. Peers may be suspended with it, so
// timeouts on peers restart after a wake-up.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace dtrain {

using SteadyTime = std::chrono::steady_clock::time_point;

// Detects suspensions by comparing clocks several times a second.
class SleepDetector {
 public:
  // Time since which the process has been running. `suspended`: total suspend time of the machine.
  SteadyTime look(SteadyTime now, std::chrono::nanoseconds suspended);

 private:
  SteadyTime looked_{}, awake_since_{};
  std::chrono::nanoseconds suspended_{};
};

// Time since which this process has been running. The first call starts the watching thread.
SteadyTime awake_since();
// Seconds since `begun`, or since the last wake-up if that is later.
double waited_since(SteadyTime begun);
// Waits for `done`, at most `limit` seconds of running time; returns done().
bool wait_awake(std::condition_variable& condition, std::unique_lock<std::mutex>& lock, double limit,
                const std::function<bool()>& done);

}  // namespace dtrain
