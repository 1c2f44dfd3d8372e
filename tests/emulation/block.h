// Block: the threads of one block of a grid, and where they wait for each other.
#pragma once

#include <cstdint>
#include <source_location>
#include <vector>

#include "tests/emulation/executor.h"
#include "tests/emulation/fiber.h"

namespace emulation {

// Says what is wrong with the program under test, as printf() would, and ends it.
[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char* format, ...);

// Where a thread waits, with what it brings and what it takes away.
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
  // All its threads are to run from the start.
  void begin(uint3 index);
  bool done() const { return live_ == 0; }

  // Lets a thread run until it waits or is done; false where it waits or is done already.
  bool step(size_t thread);
  // Ends what all have come to; false where there is none.
  bool complete_meetings();
  bool at_grid_barrier() const;
  void leave_grid_barrier();
  // Says who waits where, and ends the process.
  [[noreturn]] void report_stuck() const;

  // What meet() does for the thread that runs.
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
