// Flags of data augmentation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "dtrain/data/augmented.h"
#include "dtrain/data/mixing.h"
#include "dtrain/ops/mix_pixels.h"

namespace dtrain::cli {

// From `epoch` on, images are `size` x `size` pixels.
struct ResizeStage {
  int64_t size = 0;
  double epoch = 0;
};

struct AugmentFlags {
  std::string auto_augment = "none", random_erase_value = "mean";
  std::vector<std::string> color_jitter, random_erase_area{"0.02", "0.33"}, random_erase_aspect{"0.3", "3.3"};
  std::vector<std::string> progressive_resizing;
  int64_t ra_ops = 2, ra_magnitude = 9, repeated_augmentation = 1;
  double mixup_alpha = 0, cutmix_alpha = 0, mix_probability = 1, cutmix_share = 0.5, random_erase = 0;

  void declare(FlagSet& flags);
  void check(const FlagSet& flags) const;

  // Augmentation per sample, and per batch.
  data::SampleAugmentation sample() const;
  data::MixingOptions mixing() const;
  Erased erased_value() const;
  // In ascending order; empty without --progressive_resizing.
  std::vector<ResizeStage> stages() const;
  // Whether any flag needs records.
  bool any() const { return sample().any() || mixing().any() || repeated_augmentation > 1 || !stages().empty(); }
};

}  // namespace dtrain::cli
