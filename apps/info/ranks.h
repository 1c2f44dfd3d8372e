// dtrain-info --ranks: the ranks of a job, what each runs on, how fast they talk, and what is off.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "apps/cli/options/ranks.h"

namespace dtrain::info {

using Versions = std::map<std::string, std::string>;  // by library

struct RankOptions {
  cli::JobFlags job;
  int64_t expect_hosts = 0;     // 0: any
  std::string device = "auto";  // what the ranks would train on: a GPU each, or the processor
};

// What a rank tells the others about itself.
struct RankFacts {
  std::string name;  // "rank 1 on host-b"
  std::string host;
  std::vector<int> cores;  // that it may run on
  bool bound = false;      // to fewer cores than its parent process
  std::string numa_nodes;  // where those cores are
  std::string device;      // "CPU", or the GPU's name
  std::string gpu;         // its address; empty: none
  Versions versions;
};

// What keeps the job from being as it should be, a phrase for each.
std::vector<std::string> what_is_off(const std::vector<RankFacts>& ranks, const RankOptions& options);

// Prints on rank 0; there, throws Error naming what is off. `versions` are those of what this process has loaded.
void show_ranks(const RankOptions& options, Versions versions);

}  // namespace dtrain::info
