// torchvision's PIL ops on 8-bit images: bit-exact, except for the last digit of a float in a few ops.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "dtrain/data/image.h"

namespace dtrain::data {

// Ops of AutoAugment, RandAugment and TrivialAugment with torchvision's names; comments give the meaning of the
// magnitude. Geometric ops use nearest-neighbour sampling and fill with black.
enum class ImageOp : uint8_t {
  identity,
  shear_x,        // x += magnitude * y, from the upper edge
  shear_y,        // y += magnitude * x
  translate_x,    // pixels to the right, truncated to an integer
  translate_y,    // pixels down
  rotate,         // degrees counterclockwise about the centre
  brightness,     // these four: the factor is 1 + magnitude
  color,          // saturation
  contrast,       // relative to the mean grey level
  sharpness,      // relative to the smoothed image
  posterize,      // number of bits kept, truncated to an integer
  solarize,       // threshold: levels at or above it are inverted
  auto_contrast,  // stretches each channel to [0, 255]; the last three have no magnitude
  equalize,       // histogram equalisation per channel
  invert,
};
inline constexpr int kImageOps = 15;

// torchvision's name: "ShearX".
std::string_view name_of(ImageOp op);

// Edits images in place; reuses a buffer: one editor per worker thread. Results depend on the arguments only.
class ImageEditor {
 public:
  void apply(ImageOp op, double magnitude, Image& image);

  // torchvision's ColorJitter: blends `factor` parts of the image with 1 - factor parts of black, of its grey levels,
  // of their mean, or of the smoothed image; clamps to [0, 255].
  void scale_brightness(Image& image, float factor);
  void scale_saturation(Image& image, float factor);
  void scale_contrast(Image& image, float factor);
  void scale_sharpness(Image& image, float factor);
  // Shifts the hue by `turns` in [-0.5, 0.5], in PIL's 8-bit HSV.
  void move_hue(Image& image, double turns);

 private:
  // 2x3 matrix from a result position (x, y, 1) to a source position.
  using Affine = std::array<double, 6>;
  void transform(const Affine& to_source, Image& image);

  Image other_;
  std::vector<uint8_t> grey_;
};

}  // namespace dtrain::data
