// Flags of model details that differ between frameworks.
#pragma once

#include <optional>
#include <string>

#include "apps/cli/flags.h"
#include "dtrain/models/classifier.h"

namespace dtrain::cli {

struct ConventionFlags {
  std::string bottleneck_stride = "auto", resnet_padding = "auto";
  std::string conv_initializer = "auto", classifier_initializer = "auto";
  std::optional<double> batch_norm_epsilon, batch_norm_decay;
  bool zero_gamma = false;

  void declare(FlagSet& flags);
  // Throws Error if a ResNet flag was given for another model.
  void check(const FlagSet& flags, const models::ClassifierInfo& info) const;
  models::ModelConventions conventions() const;
};

}  // namespace dtrain::cli
