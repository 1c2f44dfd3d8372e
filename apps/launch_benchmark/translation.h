// Arguments of Intel's launch_benchmark.py, and the resulting commands.
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
  std::string combined_log{};    // with several launches
  int64_t batch = 0, ranks = 1;  // batch size per rank; ranks per launch
};

// `more`: arguments after `--`. `folder`: of our programs. `sockets`: cores of each socket. Throws Error for
// unsupported arguments.
Plan plan(const cli::FlagSet& flags, const std::vector<std::string>& more, const std::string& folder,
          std::vector<std::vector<int>> sockets);

}  // namespace dtrain::launch_benchmark
