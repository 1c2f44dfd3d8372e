// The time that sums over the ranks take, and whether they are right.
#pragma once

#include <span>

#include "apps/allreduce_benchmark/messages.h"
#include "libdtrain/distributed/communicator.h"

namespace dtrain::allreduce_benchmark {

struct Row {
  std::string name;
  int64_t bytes = 0;   // f32 bytes that are summed, whatever is on the wire
  double seconds = 0;  // median over the iterations of the rank that took longest
  int64_t wrong = 0;   // elements, over all ranks and iterations

  double algorithm_bandwidth() const { return static_cast<double>(bytes) / seconds; }
  // What goes through each rank's link, so that it can be held against the hardware whatever the number of ranks: as
  // nccl-tests defines it, times 2 (n - 1) / n.
  double bus_bandwidth(int ranks) const { return algorithm_bandwidth() * 2 * (ranks - 1) / ranks; }
};

struct Repeats {
  int64_t iterations = 20, warmup = 5;
};

// Sums `messages` at a time, one after the other where they are several, on all ranks. Collective.
Row measure(Communicator& communicator, Context& context, const std::string& name, std::span<const Message> messages,
            const Repeats& repeats);

}  // namespace dtrain::allreduce_benchmark
