// Flags -> what is to be done, checked as far as it can be without looking at the data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/cli/machine.h"
#include "apps/cli/vision.h"
#include "apps/cnn_benchmarks/flags.h"
#include "libdtrain/train/optimizer.h"
#include "libdtrain/train/schedule.h"
#include "models/classifier.h"

namespace dtrain::cnn_benchmarks {

enum class RunMode { training, training_and_evaluation, evaluation, forward_only };
const char* name_of(RunMode mode);  // as printed: "training + evaluation"

struct Config {
  Flags flags;
  RunMode mode = RunMode::training;
  std::string dataset;  // "imagenet" or "cifar10"
  cli::Machine machine;
  models::ClassifierInfo info;
  models::ClassifierOptions options;  // classes and image size resolved
  int64_t batch = 0, eval_batch = 0;  // images per device and micro-step
  int64_t warmup_steps = 0;
  std::vector<std::string> notices;  // what was asked for and is done in another way, for people

  bool synthetic() const { return flags.data_dir.empty(); }
  cli::Pixels pixels() const;
  int64_t global_batch() const { return batch * flags.gradient_accumulation; }
  bool trains() const { return mode == RunMode::training || mode == RunMode::training_and_evaluation; }
};

// Throws Error for a value that cannot be served and for a combination of flags that makes no sense.
Config make_config(const Flags& flags, const cli::FlagSet& set);

// Throws Error for the combinations that tf_cnn_benchmarks refuses, and for those that its extensions add.
void refuse_combinations(const Flags& flags, const cli::FlagSet& set);

OptimizerOptions optimizer_options(const Flags& flags);

}  // namespace dtrain::cnn_benchmarks
