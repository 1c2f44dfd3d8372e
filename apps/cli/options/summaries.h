// Flags about TensorBoard's events.
#pragma once

#include <cstdint>

#include "apps/cli/flags.h"

namespace dtrain::cli {

struct SummaryFlags {
  int64_t summary_verbosity = 0, save_summaries_steps = 0;

  void declare(FlagSet& flags);
  void check(const FlagSet& flags) const;
  // As in tf_cnn_benchmarks both have to be given, beside a train_dir.
  bool wanted() const { return summary_verbosity > 0 && save_summaries_steps > 0; }
};

}  // namespace dtrain::cli
