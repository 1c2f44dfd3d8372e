// Flags about TensorBoard's events.
#pragma once

#include <cstdint>

#include "apps/cli/flags.h"

namespace dtrain::cli {

struct SummaryFlags {
  int64_t summary_verbosity = 0, save_summaries_steps = 0;

  // `always`: there are events of the shown steps even where no number of steps is given.
  void declare(FlagSet& flags, bool always = false);
  void check(const FlagSet&) const {}
  // As in tf_cnn_benchmarks both have to be given, beside a train_dir.
  bool wanted() const { return summary_verbosity > 0 && save_summaries_steps > 0; }
  // Steps between those of which there is more than scalars; 0: there is not. `otherwise`: where none are given.
  uint64_t details_every(int64_t otherwise = 0) const;
};

}  // namespace dtrain::cli
