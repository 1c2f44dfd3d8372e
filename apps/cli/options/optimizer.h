// Flags about the update of the parameters, and the learning rate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/cli/flags.h"
#include "libdtrain/train/optimizer.h"
#include "libdtrain/train/schedule.h"

namespace dtrain::cli {

struct OptimizerFlags {
  std::string optimizer = "sgd", weight_decay_on = "weights";
  double momentum = 0.9, rmsprop_decay = 0.9, rmsprop_momentum = 0.9, rmsprop_epsilon = 1.0;
  double adam_beta1 = 0.9, adam_beta2 = 0.999, adam_epsilon = 1e-8, lars_trust = 0.001;
  std::optional<double> gradient_clip;
  double gradient_clip_norm = 0, weight_decay = 4e-5;

  void declare(FlagSet& flags);
  void check(const FlagSet& flags) const;
  OptimizerOptions options() const;
};

struct ScheduleFlags {
  std::optional<double> init_learning_rate;
  std::string piecewise_learning_rate_schedule, lr_schedule = "auto";
  double num_epochs_per_decay = 0, learning_rate_decay_factor = 0, minimum_learning_rate = 0;
  double num_learning_rate_warmup_epochs = 0, warmup_learning_rate = 0, end_learning_rate = 0, lr_power = 2;
  int64_t lr_reference_batch = 0;

  void declare(FlagSet& flags);
  void check(const FlagSet& flags) const;
  // For a run of `total_steps`, each of a batch of `batch` images of all ranks. None where no flag gives a rate: the
  // model has a schedule of its own.
  std::optional<Schedule> schedule(double steps_per_epoch, uint64_t total_steps, int64_t batch) const;

 private:
  // Without warm-up, and as flags have the rates.
  Schedule rule(double steps_per_epoch, uint64_t total_steps) const;
};

}  // namespace dtrain::cli
