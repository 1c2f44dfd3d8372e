// AugmentedDataset: the samples of another data set with further changes at random.
#pragma once

#include <memory>

#include "data/auto_augment.h"
#include "data/color_jitter.h"
#include "data/dataset.h"
#include "data/erasing.h"

namespace dtrain::data {

// What is done to a training image after it has been cropped, flipped and resized, in this order. Pixels that are
// floats are rounded to 8 bits first, where they are changed.
struct SampleAugmentation {
  ColorJitter jitter{};
  PolicyOptions policy{};
  ErasingOptions erasing{};

  bool changes_pixels() const { return jitter.any() || policy.policy != AugmentPolicy::none; }
  bool any() const { return changes_pixels() || erasing.probability > 0; }
};

// The field of i32 [6] that is added to the rows where images are erased: what PixelMixing::erased says. Erasing itself
// is left to the device, because what stands there has its meaning once pixels are normalised.
inline constexpr char kErasedField[] = "erased";

// A data set of rows with a field "images", [h, w, 3] of u8, or of f32 in [0, 255], under `augmentation`. A function of
// each sample's key: its draws are from streams of its own. What changes pixels is not left to a device. Throws Error
// where there is no such field or an option is out of range.
std::shared_ptr<Dataset> augmented(std::shared_ptr<Dataset> dataset, const SampleAugmentation& augmentation);

}  // namespace dtrain::data
