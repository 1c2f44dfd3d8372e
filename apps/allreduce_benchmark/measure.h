// Times and verifies all-reduces.
#pragma once

#include <span>

#include "apps/allreduce_benchmark/messages.h"
#include "dtrain/distributed/communicator.h"

namespace dtrain::allreduce_benchmark {

struct Row {
  std::string name;
  int64_t bytes = 0;   // message size as f32, independent of the wire type
  double seconds = 0;  // median over iterations of the slowest rank's time
  int64_t wrong = 0;   // wrong elements, over all ranks and iterations

  double algorithm_bandwidth() const { return static_cast<double>(bytes) / seconds; }
  // Bus bandwidth as in nccl-tests: algbw * 2 (n - 1) / n, comparable to the link's hardware bandwidth for any number
  // of ranks.
  double bus_bandwidth(int ranks) const { return algorithm_bandwidth() * 2 * (ranks - 1) / ranks; }
};

struct Repeats {
  int64_t iterations = 20, warmup = 5;
};

// All-reduces `messages`, one after the other if several. Collective.
Row measure(Communicator& communicator, Context& context, const std::string& name, std::span<const Message> messages,
            const Repeats& repeats);

}  // namespace dtrain::allreduce_benchmark
