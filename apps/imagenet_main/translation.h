// imagenet_main.py of MLPerf's reference for ResNet, as Intel has it: its arguments, and what they come to.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/flags.h"

namespace dtrain::imagenet_main {

void declare(cli::FlagSet& flags);

// The flags of dtrain-cnn-benchmarks that ask for the same. Throws Error for what is not served.
std::vector<std::string> translated(const cli::FlagSet& flags, const std::string& seed);

}  // namespace dtrain::imagenet_main
