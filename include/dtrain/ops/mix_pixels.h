// Batch augmentation on the device: normalisation, random erasing, mixup and CutMix.
#pragma once

#include <cstdint>
#include <tuple>

#include "dtrain/core/context.h"
#include "dtrain/ops/pointwise.h"

namespace dtrain {

// Fill of an erased window: mean colour (0 after normalisation), black (level 0 of 255), or standard normal noise per
// pixel and channel (after normalisation).
enum class Erased : uint8_t { mean, black, noise };

// Images are first normalised and erased, then mixed. Undefined tensors skip their stage.
struct PixelMixing {
  // [n, 6] i32: erased window (left, top, right, bottom), right and bottom exclusive, and a 64-bit noise key in two
  // words. Empty windows erase nothing.
  Tensor erased{};
  Erased value = Erased::mean;
  // Within the box [n, 4] i32 (left, top, right, bottom) of a row, pixels become weight * own + (1 - weight) * those of
  // row `partner`: [n] i32, weights [n] f32 in [0, 1]. A partner out of range mixes nothing.
  Tensor partners{}, weights{}, boxes{};

  auto tensors() const { return std::tie(erased, partners, weights, boxes); }
};

// y = normalize_pixels(x), erased and mixed in f32, rounded to options.dtype once; same shapes. No gradient: x is data.
// Throws Error for mismatched shapes or types.
Tensor mix_pixels(Context& context, const Tensor& x, const PixelNormalization& options, const PixelMixing& mixing);

}  // namespace dtrain
