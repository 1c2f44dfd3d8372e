#include "apps/cli/options/summaries.h"

namespace dtrain::cli {

void SummaryFlags::declare(FlagSet& flags) {
  flags.group("Display");
  flags.add(
      "summary_verbosity", summary_verbosity,
      "TensorBoard's events in train_dir: 0: none, 1: loss, learning rate and evaluations. Histograms, 2 and 3, are "
      "not served",
      {0, 3});
  flags.add("save_summaries_steps", save_summaries_steps, "steps between those events; 0: none", kCount);
}

void SummaryFlags::check(const FlagSet&) const {
  refuse({{summary_verbosity > 1,
           "--summary_verbosity=2 and 3: histograms are not served by this version of dtrain; give 1"}});
}

}  // namespace dtrain::cli
