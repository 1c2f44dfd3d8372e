// Throughput since the previous log line.
#pragma once

#include <utility>

#include "dtrain/run/observer.h"

namespace dtrain::observers {

class LogInterval {
 public:
  void add(const Stepped& event) {
    ++steps_;
    seconds_ += event.seconds;
  }
  double seconds() const { return seconds_; }
  // Steps per second since the last call; 0 if no time has passed.
  double take() {
    const double steps = std::exchange(steps_, 0), seconds = std::exchange(seconds_, 0);
    return seconds > 0 ? steps / seconds : 0;
  }

 private:
  double steps_ = 0, seconds_ = 0;
};

}  // namespace dtrain::observers
