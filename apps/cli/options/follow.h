// Flags of the best checkpoint and of early stopping.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/cli/flags.h"
#include "dtrain/run/run.h"

namespace dtrain::cli {

struct FollowFlags {
  std::string keep_best, early_stop_metric;
  std::optional<int64_t> early_stop_patience;
  double early_stop_min_delta = 0;

  void declare(FlagSet& flags);
  // `train_dir`: the folder of the checkpoints.
  void check(const FlagSet& flags, const std::string& train_dir) const;
  bool wanted() const { return !keep_best.empty() || early_stop_patience; }
  FollowOptions options() const;
};

}  // namespace dtrain::cli
