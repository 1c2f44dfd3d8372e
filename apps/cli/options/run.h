// Flags of batch size, steps and epochs.
#pragma once

#include <cstdint>
#include <optional>

#include "apps/cli/flags.h"

namespace dtrain::cli {

struct RunFlags {
  int64_t batch_size = 0, eval_batch_size = 0;
  std::optional<int64_t> num_batches, num_eval_batches, num_warmup_batches, max_train_steps;
  std::optional<double> num_epochs, num_eval_epochs;
  int64_t gradient_accumulation = 1, tf_random_seed = 1234;

  void declare(FlagSet& flags);
  void check(const FlagSet& flags) const;

  // Number of updates at the global batch size `batch`, for a data set of `samples`.
  int64_t training_batches(uint64_t samples, int64_t batch) const;
  // Batches of one evaluation: at most one epoch, so that each image counts once.
  int64_t evaluation_batches(uint64_t samples, int64_t batch) const;
  int64_t warmup_batches(int64_t initial) const { return num_warmup_batches.value_or(initial); }
  uint64_t seed() const { return static_cast<uint64_t>(tf_random_seed); }
};

// Batches of `epochs` epochs of `samples`, rounded up. Throws Error(Fault::config) if that is less than one image or
// overflows.
int64_t batches_of(double epochs, uint64_t samples, int64_t batch);

}  // namespace dtrain::cli
