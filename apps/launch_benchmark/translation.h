// launch_benchmark.py of Intel's Model Zoo: its arguments, and the commands that they come to.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "apps/cli/launch.h"

namespace dtrain::launch_benchmark {

void declare(cli::FlagSet& flags);

struct Plan {
  std::vector<cli::Launch> launches{};
  std::vector<std::string> notices{};
  std::string combined_log{};    // of several launches
  int64_t batch = 0, ranks = 1;  // images of a step of a rank; ranks of a launch
};

// `more`: what follows `--`. `folder`: where our programs are. `sockets`: the cores of each. Throws Error for what is
// not served.
Plan plan(const cli::FlagSet& flags, const std::vector<std::string>& more, const std::string& folder,
          std::vector<std::vector<int>> sockets);

}  // namespace dtrain::launch_benchmark
