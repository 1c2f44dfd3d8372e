// Flags of the run mode: training, evaluation, or both.
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
  // Predicate of steps that are followed by an evaluation, at global batch size `batch` and data set size `samples`.
  // Throws Error for a flag value that does not fit them.
  std::function<bool(uint64_t step)> evaluates_after(uint64_t samples, int64_t batch) const;
  // Epoch of the first evaluation minus one; none without a flag in epochs.
  std::optional<double> evaluation_offset() const;

 private:
  int forms() const;  // number of --eval_during_training_* flags given
};

}  // namespace dtrain::cnn_benchmarks
