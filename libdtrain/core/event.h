// Event: a point in a queue of a device's work.
#pragma once

#include <chrono>
#include <memory>

namespace dtrain {

// A device does the work of one queue in order; its queues wait for each other where they are asked to. On a CPU all
// are one, and work is done when the call returns.
enum class Stream { compute, copy, communication };

// The moment when all that was in a queue when Context::record was called is done. One that was never recorded is past.
struct Event {
  std::shared_ptr<void> device;                  // where the device queues work
  std::chrono::steady_clock::time_point when{};  // where it does not
};

}  // namespace dtrain
