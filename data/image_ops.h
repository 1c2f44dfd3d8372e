// Changes of images of 8 bits as torchvision makes them by PIL: to the bit, but for the last digit of a float in a few.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "data/image.h"

namespace dtrain::data {

// The ops of AutoAugment and its kin, in torchvision's terms: what the magnitude means is said beside each. Geometric
// ones take the nearest pixel, and black from outside the image.
enum class ImageOp : uint8_t {
  identity,
  shear_x,        // x moves by the magnitude times y, counted from the upper edge
  shear_y,        // and y by the magnitude times x
  translate_x,    // pixels to the right, cut off to a whole number
  translate_y,    // down
  rotate,         // degrees counterclockwise, about the centre
  brightness,     // the magnitude in these four is added to a factor of 1
  color,          // saturation
  contrast,       // about the mean grey level of the image
  sharpness,      // away from the image smoothed
  posterize,      // the bits that are kept of each level, cut off to a whole number
  solarize,       // levels from this one on are inverted
  auto_contrast,  // the levels of each channel are spread to 0 ... 255; these three have no magnitude
  equalize,       // so that all levels of a channel are about as frequent
  invert,
};
inline constexpr int kImageOps = 15;

// torchvision's name: "ShearX".
std::string_view name_of(ImageOp op);

// Changes images in place; keeps a buffer from image to image: one per worker thread. The results depend on the
// arguments alone.
class ImageEditor {
 public:
  void apply(ImageOp op, double magnitude, Image& image);

  // What torchvision's ColorJitter changes by a factor: `factor` parts of the image and 1 - factor parts of black, of
  // its grey levels, of their mean, or of the image smoothed; cut off to 0 ... 255.
  void scale_brightness(Image& image, float factor);
  void scale_saturation(Image& image, float factor);
  void scale_contrast(Image& image, float factor);
  void scale_sharpness(Image& image, float factor);
  // Moves the hue by `turns`, from -0.5 to 0.5, in PIL's HSV of 8 bits.
  void move_hue(Image& image, double turns);

 private:
  // From a place in the result, (x, y, 1), to one in the source: two rows.
  using Affine = std::array<double, 6>;
  void transform(const Affine& to_source, Image& image);

  Image other_;
  std::vector<uint8_t> grey_;
};

}  // namespace dtrain::data
