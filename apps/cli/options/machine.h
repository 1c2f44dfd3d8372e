// Flags of a rank's device, precision and threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "apps/cli/machine.h"
#include "apps/cli/options/ranks.h"
#include "dtrain/train/trainer.h"

namespace dtrain::cli {

struct MachineFlags {
  std::string device = "gpu", precision = "fp32", gpu_indices;
  bool use_fp16 = false, tf32 = false, deterministic = false, cuda_graph = true;
  std::optional<double> fp16_loss_scale;
  bool fp16_enable_auto_loss_scale = false;
  int64_t fp16_inc_loss_scale_every_n = 1000;
  double gpu_memory_frac_for_testing = 0;
  std::optional<int64_t> num_intra_threads;

  void declare(FlagSet& flags);
  void check(const FlagSet& flags) const;

  // The device of this rank. Appends a notice for each setting that is replaced. Throws Error(Fault::config) for
  // settings that this machine does not support.
  Machine resolve(const FlagSet& flags, const Ranks& ranks, std::vector<std::string>& notices) const;
  // Options of steps on that device.
  void apply(TrainerOptions& trainer) const;
  // Whether the user set the number of compute threads.
  bool asks_for_threads() const;
  bool wants_fp16() const { return use_fp16 || precision == "fp16"; }
};

}  // namespace dtrain::cli
