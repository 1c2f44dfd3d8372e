// Block: threads of one block of a grid, and their synchronisation.
#pragma once

#include <cstdint>
#include <source_location>
#include <vector>

#include "tests/emulation/executor.h"
#include "tests/emulation/fiber.h"

namespace emulation {

// Reports an error of the program under test, as printf(), and aborts.
[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char* format, ...);

// Wait of a thread: place, operands and result.
struct Wait {
  Meeting kind;
  unsigned mask;
  uint64_t value;
  int argument, width;
  std::source_location place;
  uint64_t result = ~uint64_t{0};
};

class Block {
 public:
  explicit Block(const Kernel& kernel);

  uint3 index() const { return index_; }
  // Starts all threads from the beginning.
  void begin(uint3 index);
  bool done() const { return live_ == 0; }

  // Runs a thread until it waits or ends; false if it is waiting or has ended.
  bool step(size_t thread);
  // Completes synchronisations at which all threads have arrived; false if there are none.
  bool complete_meetings();
  bool at_grid_barrier() const;
  void leave_grid_barrier();
  // Reports where each thread waits, and aborts.
  [[noreturn]] void report_stuck() const;

  // meet() of the running thread.
  uint64_t meet(const Wait& wait);
  unsigned running_lane_mask() const { return 1u << running_ % kWarpLanes; }

 private:
  enum class State { fresh, ready, waiting, done };
  struct Thread {
    State state = State::done;
    Fiber* fiber = nullptr;
    Wait wait;
  };

  size_t warp_begin(size_t thread) const { return thread - thread % kWarpLanes; }
  bool takes_part(size_t warp, int lane, unsigned mask) const;
  bool complete_warp(size_t thread);
  bool complete_barrier();

  const Kernel* kernel_;
  uint3 index_{};
  std::vector<Thread> threads_;
  size_t live_ = 0, running_ = 0;
};

}  // namespace emulation
