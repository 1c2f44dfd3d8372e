// Flags of TensorBoard summaries.
#pragma once

#include <cstdint>

#include "apps/cli/flags.h"

namespace dtrain::cli {

struct SummaryFlags {
  int64_t summary_verbosity = 0, save_summaries_steps = 0;

  // `always`: displayed steps have events even without a number of steps.
  void declare(FlagSet& flags, bool always = false);
  void check(const FlagSet&) const {}
  // As in tf_cnn_benchmarks, both are required, and a train_dir.
  bool wanted() const { return summary_verbosity > 0 && save_summaries_steps > 0; }
  // Steps between events with more than scalars; 0: none. `otherwise`: the default.
  uint64_t details_every(int64_t otherwise = 0) const;
};

}  // namespace dtrain::cli
