// Flags about what a run does: train, evaluate, or both; and those that only tf_cnn_benchmarks has.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/flags.h"

namespace dtrain::cnn_benchmarks {

enum class RunMode { training, training_and_evaluation, evaluation, forward_only };
const char* name_of(RunMode mode);  // as printed: "training + evaluation"

struct ModeFlags {
  bool eval = false, forward_only = false;
  int64_t eval_interval_secs = 0, eval_nth_checkpoints = 0;
  std::optional<int64_t> eval_during_training_every_n_steps;
  std::optional<double> eval_during_training_every_n_epochs;
  std::vector<std::string> eval_during_training_at_specified_steps, eval_during_training_at_specified_epochs;
  std::optional<double> stop_at_top_1_accuracy;
  std::string eval_dir;

  void declare(cli::FlagSet& flags);
  void check(const cli::FlagSet& flags) const;

  bool evaluates_during_training() const { return forms() > 0; }
  RunMode mode() const;
  // Whether training pauses for an evaluation after a step: in batches of `batch` images of a data set of `samples`.
  // Throws Error for a flag whose value does not fit them.
  std::function<bool(uint64_t step)> evaluates_after(uint64_t samples, int64_t batch) const;
  // Epochs before the first evaluation, less one; none where no flag says epochs.
  std::optional<double> evaluation_offset() const;

 private:
  int forms() const;  // how many of --eval_during_training_* are given
};

// What has a meaning in tf_cnn_benchmarks alone; its log shows some of it.
struct TfFlags {
  int64_t num_gpus = 1;
  std::optional<int64_t> autotune_threshold;
  int64_t batch_group_size = 1;
  std::string data_format = "NCHW", loss_type_to_report = "total_loss", rewriter_config, compatible_with = "master";
  bool print_training_accuracy = false;

  void declare(cli::FlagSet& flags);
  void check(const cli::FlagSet&) const {}
  int64_t warmup_batches() const;
};

}  // namespace dtrain::cnn_benchmarks
