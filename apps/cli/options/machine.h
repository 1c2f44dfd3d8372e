// Flags about the device of a rank, and how it computes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "apps/cli/machine.h"
#include "apps/cli/options/ranks.h"
#include "libdtrain/train/trainer.h"

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

  // The device of this rank. Appends to `notices` what is done in another way than it was asked for; throws
  // Error(Fault::config) for what this machine cannot do.
  Machine resolve(const FlagSet& flags, const Ranks& ranks, std::vector<std::string>& notices) const;
  // How steps are run on it.
  void apply(TrainerOptions& trainer) const;
  // True where the number of compute threads is not left to the program.
  bool asks_for_threads() const;
  bool wants_fp16() const { return use_fp16 || precision == "fp16"; }
};

}  // namespace dtrain::cli
