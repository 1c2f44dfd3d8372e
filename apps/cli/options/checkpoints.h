// Flags about what a run continues from, and when it saves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/cli/flags.h"
#include "apps/cli/options/follow.h"
#include "apps/cli/options/ranks.h"
#include "libdtrain/run/run.h"

namespace dtrain::cli {

struct CheckpointFlags {
  std::string train_dir, resume = "auto", weights;
  int64_t save_model_secs = 0, max_ckpts_to_keep = 5;
  double checkpoint_timeout = RunOptions{}.checkpoint_timeout;
  std::optional<int64_t> save_model_steps;
  std::optional<double> save_model_epochs;
  bool local_ckpt = false, clear_train_dir = false;
  FollowFlags follow;

  void declare(FlagSet& flags);
  // All but --weights, for programs in which that has another name. Returns --train_dir.
  Flag& declare_saving(FlagSet& flags);
  void check(const FlagSet& flags) const;
  // What the run continues from, what it keeps, and when it saves.
  void apply(RunOptions& run) const;
  // Does what clear_train_dir asks for; the ranks that write there do. Throws Error(Fault::config) where another
  // process writes there. Collective.
  void clear(const Ranks& ranks, Group& group) const;
};

}  // namespace dtrain::cli
