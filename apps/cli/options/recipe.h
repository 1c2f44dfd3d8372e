// Recipes: hyperparameters and conventions of other programs' ImageNet training, as flag values.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/flags.h"

namespace dtrain::cli {

struct RecipeFlags {
  std::string recipe;

  void declare(FlagSet& flags);
  void check(const FlagSet&) const {}
  // Applies the recipe to flags that the command line does not set. Returns one notice line per subject. If the command
  // line selects another learning-rate schedule, class set or preprocessing, the recipe's details of that subject are
  // skipped.
  std::vector<std::string> apply(FlagSet& flags) const;
};

}  // namespace dtrain::cli
