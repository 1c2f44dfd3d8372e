// train_imagenet_resnet_hvd.py of AWS's deep-learning-models: its arguments, and what they come to.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/flags.h"

namespace dtrain::train_imagenet {

void declare(cli::FlagSet& flags);

// The flags of dtrain-cnn-benchmarks that ask for the same. `gpu`: there is one. Throws Error for what is not served.
std::vector<std::string> translated(const cli::FlagSet& flags, bool gpu);

}  // namespace dtrain::train_imagenet
