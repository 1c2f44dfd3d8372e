#include "apps/cli/options/recipe.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "apps/cli/options/recipe_table.h"

namespace dtrain::cli {
namespace {

// Flags that override a subject of a recipe, and the recipe's flags that are skipped then.
struct Displacement {
  std::vector<const char*> given, left_out;
};

const std::vector<Displacement> kDisplacements = {
    {{"num_classes", "data_name"}, {"num_classes", "label_offset"}},
    {{"preprocessing"}, {"resize_method", "distortions"}},
    {{"optimizer"}, {"larc", "larc_trust", "larc_joint_norm", "lars_trust"}},
    {{"larc"}, {"larc_trust", "larc_joint_norm"}},
    {{"init_learning_rate", "piecewise_learning_rate_schedule", "lr_decay_lrs", "resnet_base_lr"},
     {"lr_reference_batch"}},
    {{"init_learning_rate", "lr_schedule"}, {"piecewise_learning_rate_schedule"}},
    {{"piecewise_learning_rate_schedule", "lr_decay_lrs", "num_epochs_per_decay", "learning_rate_decay_factor",
      "minimum_learning_rate", "resnet_base_lr"},
     {"init_learning_rate", "piecewise_learning_rate_schedule", "lr_schedule", "lr_power", "end_learning_rate",
      "num_learning_rate_warmup_epochs", "warmup_learning_rate", "lr_reference_batch", "lr_periods", "lr_alpha",
      "lr_beta"}},
};

std::set<std::string> left_out(const FlagSet& flags) {
  std::set<std::string> names;
  for (const Displacement& displacement : kDisplacements)
    if (std::ranges::any_of(displacement.given, [&](const char* flag) { return flags.given(flag); }))
      names.insert(displacement.left_out.begin(), displacement.left_out.end());
  return names;
}

}  // namespace

void RecipeFlags::declare(FlagSet& flags) {
  std::vector<std::string> names;
  for (const Recipe& known : recipes()) names.emplace_back(known.name);
  flags.group("Recipe");
  flags
      .add_choice("recipe", recipe, names,
                  "sets the flags to another program's ImageNet hyperparameters, and prints them; flags on the command "
                  "line take precedence")
      .setting("recipe");
}

std::vector<std::string> RecipeFlags::apply(FlagSet& flags, const std::set<std::string>* user_flags) const {
  std::vector<std::string> lines;
  const auto chosen = std::ranges::find(recipes(), recipe, &Recipe::name);
  if (chosen == recipes().end()) return lines;
  const std::set<std::string> omitted = left_out(flags);
  for (const auto& [subject, settings] : chosen->parts) {
    std::string text;
    for (const auto& [flag, value] : settings) {
      const bool given = flags.given(flag);
      if (!given && omitted.contains(flag)) continue;
      flags.imply(flag, value, "recipe " + recipe);
      const bool by_user = user_flags == nullptr ? given : user_flags->contains(flag);
      text += fmt::format(" --{}={}{}", flag, flags.text(flag), by_user ? " (given)" : "");
    }
    if (!text.empty()) lines.push_back(fmt::format("recipe {}, {}:{}", recipe, subject, text));
  }
  lines.push_back(
      fmt::format("recipe {}, order of samples: {} there; here each epoch is one permutation of all "
                  "samples, split over the ranks",
                  recipe, chosen->sharding));
  return lines;
}

}  // namespace dtrain::cli
