// Flags of checkpoints: where to resume, and when to save.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/cli/flags.h"
#include "apps/cli/options/follow.h"
#include "apps/cli/options/ranks.h"
#include "dtrain/run/run.h"

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
  // All flags except --weights, for programs where it has another name. Returns --train_dir.
  Flag& declare_saving(FlagSet& flags);
  void check(const FlagSet& flags) const;
  // Where the run resumes, which checkpoints it keeps, and when it saves.
  void apply(RunOptions& run) const;
  // Implements clear_train_dir on the ranks that write there. Throws Error(Fault::config) if another process uses the
  // folder. Collective.
  void clear(const Ranks& ranks, Group& group) const;
};

}  // namespace dtrain::cli
