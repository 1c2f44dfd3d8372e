// Flags -> what is to be done, checked as far as it can be without looking at the data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/cli/machine.h"
#include "apps/cli/vision.h"
#include "apps/cnn_benchmarks/distribution.h"
#include "libdtrain/train/optimizer.h"
#include "libdtrain/train/schedule.h"
#include "models/classifier.h"

namespace dtrain::cnn_benchmarks {

enum class RunMode { training, training_and_evaluation, evaluation, forward_only };
const char* name_of(RunMode mode);  // as printed: "training + evaluation"

// Which of the processes that train together this is.
struct Ranks {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // among those of its host
  int chief = 0;                       // the one that writes checkpoints and metrics and talks to people
  bool is_chief() const { return rank == chief; }
};

struct Config {
  Flags flags;
  Ranks ranks;
  RunMode mode = RunMode::training;
  std::string dataset;  // "imagenet" or "cifar10"
  cli::Machine machine;
  Distribution distribution;
  models::ClassifierInfo info;
  models::ClassifierOptions options;  // classes and image size resolved
  int64_t batch = 0, eval_batch = 0;  // images per device and micro-step
  int64_t micro_steps = 1;            // of a step: the checkpoint that is continued may ask for others than the flags
  int64_t warmup_steps = 0;
  std::vector<std::string> notices;  // what was asked for and is done in another way, for people

  bool synthetic() const { return flags.data_dir.empty(); }
  bool decodes_on_gpu() const { return flags.jpeg_decoder == "gpu"; }
  cli::Pixels pixels() const;
  int64_t global_batch() const { return batch * micro_steps * ranks.size; }
  int64_t global_eval_batch() const { return eval_batch * ranks.size; }
  // Gradients pass a communicator.
  bool sums() const { return ranks.size > 1 || distribution.gradients.even_alone; }
  bool trains() const { return mode == RunMode::training || mode == RunMode::training_and_evaluation; }
};

// Throws Error for a value that cannot be served and for a combination of flags that makes no sense.
Config make_config(const Flags& flags, const cli::FlagSet& set, const Ranks& ranks = {});

// Throws Error for the combinations that tf_cnn_benchmarks refuses, and for those that its extensions add.
void refuse_combinations(const Flags& flags, const cli::FlagSet& set);

OptimizerOptions optimizer_options(const Flags& flags);

}  // namespace dtrain::cnn_benchmarks
