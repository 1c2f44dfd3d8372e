// Flags about SSD300, by tf_cnn_benchmarks' names.
#pragma once

#include <string>

#include "apps/cli/flags.h"

namespace dtrain::ssd {

struct Flags {
  bool collect_eval_results_async = false;
  std::string backbone_model_path;

  void declare(cli::FlagSet& flags);
  void check(const cli::FlagSet&) const {}
  // The name of a flag that was given, or nothing.
  std::string given() const;
};

// Sets what tf_cnn_benchmarks' users give to train it, where it was not given: momentum and its weight decay.
void imply_defaults(cli::FlagSet& flags);
// Throws Error where one was given that means something to image classifiers only.
void refuse_classifiers_flags(const cli::FlagSet& flags);

}  // namespace dtrain::ssd
