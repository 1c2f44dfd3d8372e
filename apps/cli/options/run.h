// Flags about the size and the length of a run.
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

  // Updates, each of a batch of `batch` images of all ranks, for a data set of `samples`.
  int64_t training_batches(uint64_t samples, int64_t batch) const;
  // The length of one evaluation: one pass at most, so that each image counts once.
  int64_t evaluation_batches(uint64_t samples, int64_t batch) const;
  int64_t warmup_batches(int64_t initial) const { return num_warmup_batches.value_or(initial); }
  uint64_t seed() const { return static_cast<uint64_t>(tf_random_seed); }
};

// Whole batches that hold `epochs` passes over `samples`, rounded up. Throws Error(Fault::config) where these are less
// than an image or more than can be counted.
int64_t batches_of(double epochs, uint64_t samples, int64_t batch);

}  // namespace dtrain::cli
