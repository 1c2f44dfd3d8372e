// Event and Stream: order and progress of a device's asynchronous work.
#pragma once

#include <chrono>
#include <memory>

namespace dtrain {

// Streams of a device: work within one runs in order; streams synchronise by events. On a CPU calls complete before
// they return.
enum class Stream { compute, copy, communication };

// Completion of the work that was in a stream at Context::record. A default-constructed event is past.
struct Event {
  std::shared_ptr<void> device;                  // the device's event; null on a CPU
  std::chrono::steady_clock::time_point when{};  // on a CPU
};

}  // namespace dtrain
