// Recipes: hyperparameters and conventions of other programs' ImageNet training, as flag values.
#pragma once

#include <set>
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
  // skipped. Lines mark flags of the command line as given; `user_flags`: those that the user set, where a front end
  // made the command line.
  std::vector<std::string> apply(FlagSet& flags, const std::set<std::string>* user_flags = nullptr) const;
};

}  // namespace dtrain::cli
