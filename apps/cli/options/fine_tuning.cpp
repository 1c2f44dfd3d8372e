#include "apps/cli/options/fine_tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtrain::cli {

void FineTuningFlags::declare(FlagSet& flags) {
  flags.group("Fine-tuning");
  flags
      .add("freeze", freeze,
           "parts of the model that are not trained, e.g. stem,layer1: the largest ones, which an unknown name lists, "
           "or "
           "longer paths such as layer1.0; their batch norms use the running statistics")
      .setting("frozen parts", [this] { return fmt::format("{}", fmt::join(freeze, ",")); });
  flags
      .add("head_learning_rate_factor", head_learning_rate_factor,
           "factor of the learning rate of the head: a classifier's last linear layer, a detector's predictors",
           kNotNegative)
      .setting("head learning rate factor",
               [this] { return head_learning_rate_factor == 1 ? "" : fmt::format("{}", head_learning_rate_factor); });
}

}  // namespace dtrain::cli
