// Flags of the optimiser and of the learning-rate schedule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/cli/flags.h"
#include "dtrain/train/optimizer.h"
#include "dtrain/train/schedule.h"

namespace dtrain::cli {

struct OptimizerFlags {
  std::string optimizer = "sgd", weight_decay_on = "weights";
  double momentum = 0.9, rmsprop_decay = 0.9, rmsprop_momentum = 0.9, rmsprop_epsilon = 1.0;
  double adam_beta1 = 0.9, adam_beta2 = 0.999, adam_epsilon = 1e-8, lars_trust = 0.001;
  double lamb_epsilon = 1e-6, larc_trust = 0.02;
  std::string larc = "none";
  bool larc_joint_norm = false;
  std::optional<double> larc_epsilon;
  std::optional<double> gradient_clip;
  double gradient_clip_norm = 0, weight_decay = 4e-5, weight_ema = 0;
  bool weight_ema_warmup = true;

  void declare(FlagSet& flags);
  void check(const FlagSet& flags) const;
  OptimizerOptions options() const;
};

struct ScheduleFlags {
  std::optional<double> init_learning_rate;
  std::string piecewise_learning_rate_schedule, lr_schedule = "auto", lr_decay_epochs, lr_decay_lrs;
  double num_epochs_per_decay = 0, learning_rate_decay_factor = 0, minimum_learning_rate = 0;
  double num_learning_rate_warmup_epochs = 0, warmup_learning_rate = 0, end_learning_rate = 0, lr_power = 2;
  int64_t lr_reference_batch = 0;
  double lr_cycle_epochs = 0, lr_t_mul = 2, lr_m_mul = 1, lr_periods = 0.5, lr_alpha = 0, lr_beta = 0.001;
  bool lr_staircase = true;

  void declare(FlagSet& flags);
  void check(const FlagSet& flags) const;
  // Schedule of a run of `total_steps` at the global batch size `batch`. None if no flag sets a learning rate: the
  // model's default schedule applies.
  std::optional<Schedule> schedule(double steps_per_epoch, uint64_t total_steps, int64_t batch) const;

 private:
  bool from_mlperf() const { return lr_schedule == "mlperf_lars"; }
  // Without warm-up and batch scaling. None if no flag sets a learning rate.
  std::optional<Schedule> rule(double steps_per_epoch, uint64_t total_steps) const;
  // A schedule that starts from init_learning_rate.
  Schedule decayed(double steps_per_epoch, uint64_t total_steps) const;
  void check_names(const FlagSet& flags) const;
};

}  // namespace dtrain::cli
