// Flags without an equivalent outside of tf_cnn_benchmarks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/cli/flags.h"

namespace dtrain::cli {

// Flags specific to tf_cnn_benchmarks; its log header shows some of them.
struct TfFlags {
  int64_t num_gpus = 1;
  std::optional<int64_t> autotune_threshold;
  int64_t batch_group_size = 1;
  std::string data_format = "NCHW", loss_type_to_report = "total_loss", rewriter_config, compatible_with = "dtrain";
  bool print_training_accuracy = false;

  void declare(FlagSet& flags);
  void check(const FlagSet&) const {}
  int64_t warmup_batches() const;
  bool prints_their_lines_alone() const { return compatible_with != "dtrain"; }
};

}  // namespace dtrain::cli
