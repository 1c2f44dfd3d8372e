// A run from its command line on: for the program itself, and for those that translate other programs' command lines.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/log.h"
#include "libdtrain/run/observer.h"

namespace dtrain::cnn_benchmarks {

// What another program's log says of a run beside its events.
struct RunFacts {
  int64_t global_batch = 0;  // images of a step, over all ranks
  int ranks = 1;
  uint64_t samples = 0;  // images of the training set
};

// A program that runs what its own command line comes to, and prints its own log.
struct FrontEnd {
  std::vector<std::string> argv{};     // by which it was started, for the ranks that --num_gpus starts
  std::vector<std::string> notices{};  // about that
  // Takes the place of tf_cnn_benchmarks' log; `log` outlives what is returned.
  std::function<std::unique_ptr<Observer>(const RunFacts&, cli::Log& log)> observer{};
};

// Runs what `argv`, a command line of dtrain-cnn-benchmarks, asks for, and returns the exit code. Throws Error as the
// parts of a run do.
int run_program(const std::vector<std::string>& argv, const FrontEnd* front = nullptr);

}  // namespace dtrain::cnn_benchmarks
