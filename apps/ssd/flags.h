// Flags of SSD300, with tf_cnn_benchmarks' names.
#pragma once

#include <string>

#include "apps/cli/flags.h"

namespace dtrain::ssd {

struct Flags {
  bool collect_eval_results_async = false;
  std::string backbone_model_path;

  void declare(cli::FlagSet& flags);
  void check(const cli::FlagSet&) const {}
  // Name of an SSD300 flag that was given, or empty.
  std::string given() const;
};

// Default hyperparameters of tf_cnn_benchmarks' SSD300 training for flags that were not given: momentum and weight
// decay.
void imply_defaults(cli::FlagSet& flags);
// Throws Error for flags that apply to image classifiers only.
void refuse_classifiers_flags(const cli::FlagSet& flags);

}  // namespace dtrain::ssd
