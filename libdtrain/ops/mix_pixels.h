// What is done to the images of a batch on their way into the network: normalisation, erasing, and mixing.
#pragma once

#include <cstdint>
#include <tuple>

#include "libdtrain/core/context.h"
#include "libdtrain/ops/pointwise.h"

namespace dtrain {

// What stands where an image is erased: the mean colour, which is normalised to 0; black, level 0 of 255; or noise,
// standard normal once normalised, by pixel and channel.
enum class Erased : uint8_t { mean, black, noise };

// First each image is normalised and erased, then images are mixed. Tensors of either may be undefined: it is left out.
struct PixelMixing {
  // [n, 6] i32: the window (left, top, right, bottom), the last two excluded, that is erased, and two words that the
  // noise follows from. Empty windows erase nothing.
  Tensor erased{};
  Erased value = Erased::mean;
  // Within the box [n, 4] i32 (left, top, right, bottom) of a row, pixels are weight * own + (1 - weight) * those of
  // the row `partner`: [n] i32, weights [n] f32 in [0, 1]. A partner that is no row of the batch mixes nothing.
  Tensor partners{}, weights{}, boxes{};

  auto tensors() const { return std::tie(erased, partners, weights, boxes); }
};

// y = normalize_pixels(x), erased and mixed, in f32 and rounded to options.dtype once; shapes as there. No gradient: x
// is data. Throws Error where shapes or types do not fit.
Tensor mix_pixels(Context& context, const Tensor& x, const PixelNormalization& options, const PixelMixing& mixing);

namespace cpu {
void mix_pixels(Context&, const Tensor& x, const PixelNormalization&, const PixelMixing&, const Tensor& y);
}  // namespace cpu

namespace cuda {
decltype(cpu::mix_pixels) mix_pixels;
}  // namespace cuda

}  // namespace dtrain
