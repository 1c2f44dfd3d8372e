// Flags of checkpoints: where to resume, and when to save.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "apps/cli/flags.h"
#include "apps/cli/options/follow.h"
#include "apps/cli/options/ranks.h"
#include "dtrain/run/run.h"

namespace dtrain {
class RemoteTrainDir;
}

namespace dtrain::cli {

struct CheckpointFlags {
  std::string train_dir, resume = "auto", weights;
  int64_t save_model_secs = 0, max_ckpts_to_keep = 5, lease_timeout = 120;
  double checkpoint_timeout = RunOptions{}.checkpoint_timeout;
  std::optional<int64_t> save_model_steps;
  std::optional<double> save_model_epochs;
  bool local_ckpt = false, clear_train_dir = false;
  FollowFlags follow;
  bool uploads = false;                    // train_dir was given as s3://, and is now its working folder
  std::shared_ptr<RemoteTrainDir> remote;  // on the chief, if so

  void declare(FlagSet& flags);
  // All flags except --weights, for programs where it has another name. Returns --train_dir.
  Flag& declare_saving(FlagSet& flags);
  void check(const FlagSet& flags) const;
  // Where the run resumes, which checkpoints it keeps, and when it saves.
  void apply(RunOptions& run) const;
  // Implements clear_train_dir on the ranks that write there. Throws Error(Fault::config) if another process uses the
  // folder. Collective.
  void clear(const Ranks& ranks, Group& group) const;

  // --weights, else, to evaluate, the newest checkpoint in train_dir; "" if there are none.
  std::string recorded_weights(bool evaluates) const;

  bool is_remote() const { return train_dir.starts_with("s3://"); }
  // Replaces a train_dir in object storage by its working folder in the cache folder, and opens it on the chief, while
  // the other ranks wait. False after a stop request. Collective.
  bool open_remote(Group& group);
  // Uploads the last files of a run that has ended without an error. Collective.
  void close_remote(Group& group) const;
};

}  // namespace dtrain::cli
