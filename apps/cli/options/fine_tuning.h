// Flags of fine-tuning: frozen parts, and the learning rate of the head.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/flags.h"

namespace dtrain::cli {

struct FineTuningFlags {
  std::vector<std::string> freeze;
  double head_learning_rate_factor = 1;

  void declare(FlagSet& flags);
  void check(const FlagSet&) const {}
};

}  // namespace dtrain::cli
