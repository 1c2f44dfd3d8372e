// AugmentedDataset: random augmentations on top of another data set.
#pragma once

#include <memory>

#include "dtrain/data/auto_augment.h"
#include "dtrain/data/color_jitter.h"
#include "dtrain/data/dataset.h"
#include "dtrain/data/erasing.h"

namespace dtrain::data {

// Augmentations after crop, flip and resize, in this order. Float pixels are rounded to 8 bits where a policy modifies
// them.
struct SampleAugmentation {
  ColorJitter jitter{};
  PolicyOptions policy{};
  ErasingOptions erasing{};

  bool changes_pixels() const { return jitter.any() || policy.policy != AugmentPolicy::none; }
  bool any() const { return changes_pixels() || erasing.probability > 0; }
};

// i32 [6] field with the rectangle to erase (random erasing), as PixelMixing::erased. The device erases, because the
// fill value applies to normalised pixels.
inline constexpr char kErasedField[] = "erased";

// Applies `augmentation` to the field "images" of a data set, [h, w, 3] of u8, or of f32 in [0, 255]. A pure function
// of the sample key; each augmentation draws from a separate random stream. Augmented pixels are made on the host.
// Throws Error if the field is missing or an option is out of range.
std::shared_ptr<Dataset> augmented(std::shared_ptr<Dataset> dataset, const SampleAugmentation& augmentation);

}  // namespace dtrain::data
