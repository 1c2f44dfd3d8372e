#include "apps/cli/options/summaries.h"

namespace dtrain::cli {

void SummaryFlags::declare(FlagSet& flags, bool always) {
  flags.group("Display");
  flags.add("summary_verbosity", summary_verbosity,
            "TensorBoard events in train_dir: 0: none; 1: scalars (losses, learning rate, evaluations) and settings; "
            "2: also a histogram of all gradients; 3: also histograms of each gradient and parameter, and images",
            {0, 3});
  flags.add(
      "save_summaries_steps", save_summaries_steps,
      always ? "steps between TensorBoard events; 0: scalars with each displayed step, others every display_every steps"
             : "steps between TensorBoard events; 0: none",
      kCount);
}

uint64_t SummaryFlags::details_every(int64_t otherwise) const {
  if (summary_verbosity < 2) return 0;
  return static_cast<uint64_t>(save_summaries_steps > 0 ? save_summaries_steps : otherwise);
}

}  // namespace dtrain::cli
