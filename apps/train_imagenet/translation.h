// Arguments of train_imagenet_resnet_hvd.py of AWS's deep-learning-models, and their translation.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/arguments.h"

namespace dtrain::train_imagenet {

void declare(cli::FlagSet& flags);

// Equivalent flags of dtrain-cnn-benchmarks. `gpu`: whether there is a GPU. Throws Error for unsupported arguments.
std::vector<std::string> translated(const cli::FlagSet& flags, bool gpu);

// Names for messages about flags of dtrain-cnn-benchmarks. `more`: the arguments after `--`.
cli::FlagNames names(const cli::FlagSet& flags, const std::vector<std::string>& more);

}  // namespace dtrain::train_imagenet
