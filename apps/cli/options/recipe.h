// Recipes: the conventions of other programs' trainings on ImageNet, as values of flags.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/flags.h"

namespace dtrain::cli {

struct RecipeFlags {
  std::string recipe;

  void declare(FlagSet& flags);
  void check(const FlagSet&) const {}
  // Sets what the recipe says and the command line does not, and returns that for people, a line for each subject.
  // Where the command line asks for another rule of learning rates, classes or pixels, what the recipe says about the
  // details of its own is left out.
  std::vector<std::string> apply(FlagSet& flags) const;
};

}  // namespace dtrain::cli
