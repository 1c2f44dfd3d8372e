// Runs command lines of dtrain-cnn-benchmarks, also for front ends that translate other programs' command lines.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/arguments.h"
#include "apps/cli/log.h"
#include "dtrain/run/observer.h"

namespace dtrain::cnn_benchmarks {

// Facts of a run for another program's log format.
struct RunFacts {
  int64_t global_batch = 0;
  int ranks = 1;
  uint64_t samples = 0;  // size of the training set
};

// A front end with its own command line and log format.
struct FrontEnd {
  std::vector<std::string> argv{};     // its command line, for the ranks of --num_gpus
  std::vector<std::string> notices{};  // about the command line
  cli::FlagNames names{};              // for messages about our flags
  // Creates the replacement of tf_cnn_benchmarks' log; `log` outlives it.
  std::function<std::unique_ptr<Observer>(const RunFacts&, cli::Log& log)> observer{};
};

// Runs `argv`, a command line of dtrain-cnn-benchmarks, and returns the exit code. Throws Error on failure.
int run_program(const std::vector<std::string>& argv);
// The same for a front end. Notices and errors have its names of flags.
int run_program(const std::vector<std::string>& argv, const FrontEnd& front);

}  // namespace dtrain::cnn_benchmarks
