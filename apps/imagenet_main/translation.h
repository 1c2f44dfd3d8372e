// Arguments of imagenet_main.py (MLPerf's ResNet reference in Intel's version), and their translation.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/arguments.h"

namespace dtrain::imagenet_main {

void declare(cli::FlagSet& flags);

// Equivalent flags of dtrain-cnn-benchmarks. Throws Error for unsupported arguments.
std::vector<std::string> translated(const cli::FlagSet& flags, const std::string& seed);

// Names for messages about flags of dtrain-cnn-benchmarks. `more`: the arguments after `--`.
cli::FlagNames names(const cli::FlagSet& flags, const std::vector<std::string>& more);

}  // namespace dtrain::imagenet_main
