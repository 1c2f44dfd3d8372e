// Suspension detector and the thread that polls it.
#include "libdtrain/distributed/awake.h"

#include <algorithm>
#include <ctime>
#include <thread>

#include "libdtrain/distributed/blocked_signals.h"

namespace dtrain {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kEvery{200};
// Gaps between polls from which the process was stopped; load delays them by less.
constexpr std::chrono::seconds kSleep{2};
// Tolerance between the two clocks, which are read one after the other.
constexpr std::chrono::seconds kSuspend{1};

std::chrono::nanoseconds read(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

class Watch {
 public:
  Watch() {
    const BlockedSignals blocked;
    std::thread([this] {
      for (;; std::this_thread::sleep_for(kEvery)) look();
    }).detach();
  }
  struct Look {
    SteadyTime now, awake_since;
  };
  Look look() {
    const std::lock_guard lock(mutex_);
    const std::chrono::nanoseconds suspended = read(CLOCK_BOOTTIME) - read(CLOCK_MONOTONIC);
    const SteadyTime now = Clock::now();
    return {now, detector_.look(now, suspended)};
  }

 private:
  std::mutex mutex_;
  SleepDetector detector_;
};

// Process-wide singleton; it and its thread live until the process ends.
Watch& watch() {
  static Watch* const one = new Watch;
  return *one;
}

}  // namespace

SteadyTime SleepDetector::look(SteadyTime now, std::chrono::nanoseconds suspended) {
  if (now - looked_ > kSleep || suspended - suspended_ > kSuspend) awake_since_ = now;
  looked_ = now;
  suspended_ = suspended;
  return awake_since_;
}

SteadyTime awake_since() { return watch().look().awake_since; }

// Both times come from one poll: a suspension right after it shows in the next.
double waited_since(SteadyTime begun) {
  const auto [now, since] = watch().look();
  return std::chrono::duration<double>(now - std::max(begun, since)).count();
}

bool wait_awake(std::condition_variable& condition, std::unique_lock<std::mutex>& lock, double limit,
                const std::function<bool()>& done) {
  const SteadyTime begun = Clock::now();
  while (!condition.wait_for(lock, kEvery, done))
    if (waited_since(begun) >= limit) return false;
  return true;
}

}  // namespace dtrain
