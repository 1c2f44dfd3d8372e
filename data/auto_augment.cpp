#include "dtrain/data/auto_augment.h"

#include <array>
#include <cmath>

#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

// torch.linspace: float arithmetic from both ends.
float level_of(float from, float to, int bin, int bins) {
  const float step = (to - from) / static_cast<float>(bins - 1);
  return bin < bins / 2 ? from + step * static_cast<float>(bin) : to - step * static_cast<float>(bins - bin - 1);
}

// Bits kept by posterize: 8 minus up to `lost` at the largest magnitude, rounded half to even.
double bits_of(int lost, int bin, int bins) {
  const float per_bit = static_cast<float>(bins - 1) / static_cast<float>(lost);
  return 8 - std::nearbyint(static_cast<float>(bin) / per_bit);
}

Change with_sign(ImageOp op, double magnitude, bool negative) {
  return {op, negative && is_signed(op) ? -magnitude : magnitude};
}

}  // namespace

std::span<const ImageOp> drawn_ops() {
  static constexpr std::array ops{ImageOp::identity,      ImageOp::shear_x,   ImageOp::shear_y,    ImageOp::translate_x,
                                  ImageOp::translate_y,   ImageOp::rotate,    ImageOp::brightness, ImageOp::color,
                                  ImageOp::contrast,      ImageOp::sharpness, ImageOp::posterize,  ImageOp::solarize,
                                  ImageOp::auto_contrast, ImageOp::equalize};
  return ops;
}

bool is_signed(ImageOp op) { return ImageOp::shear_x <= op && op <= ImageOp::sharpness; }

double magnitude_of(ImageOp op, int bin, int bins, bool wide, int width, int height) {
  DT_CHECK(bins > 1 && bin >= 0 && bin < bins, "image op: magnitude bin ", bin, " of ", bins);
  const auto up_to = [&](double most) { return static_cast<double>(level_of(0, static_cast<float>(most), bin, bins)); };
  constexpr double kTranslated = 150.0 / 331.0;
  switch (op) {
    case ImageOp::shear_x:
    case ImageOp::shear_y:
      return up_to(wide ? 0.99 : 0.3);
    case ImageOp::translate_x:
      return up_to(wide ? 32.0 : kTranslated * width);
    case ImageOp::translate_y:
      return up_to(wide ? 32.0 : kTranslated * height);
    case ImageOp::rotate:
      return up_to(wide ? 135.0 : 30.0);
    case ImageOp::brightness:
    case ImageOp::color:
    case ImageOp::contrast:
    case ImageOp::sharpness:
      return up_to(wide ? 0.99 : 0.9);
    case ImageOp::posterize:
      return bits_of(wide ? 6 : 4, bin, bins);
    case ImageOp::solarize:
      return static_cast<double>(level_of(255, 0, bin, bins));
    default:
      return 0;
  }
}

std::vector<Change> draw_changes(const PolicyOptions& options, int width, int height, RandomStream& random) {
  std::vector<Change> changes;
  const auto drawn_op = [&] { return drawn_ops()[random.below(static_cast<uint32_t>(drawn_ops().size()))]; };
  const auto add = [&](ImageOp op, int bin, int bins, bool negative) {
    const bool wide = options.policy == AugmentPolicy::trivial_augment;
    const double magnitude = bin < 0 ? 0 : magnitude_of(op, bin, bins, wide, width, height);
    changes.push_back(with_sign(op, magnitude, negative));
  };
  if (options.policy == AugmentPolicy::none) return changes;
  if (options.policy == AugmentPolicy::rand_augment) {
    for (int i = 0; i < options.ops; ++i) {
      const ImageOp op = drawn_op();
      add(op, options.magnitude, kMagnitudeBins, random.below(2) == 1);
    }
  } else if (options.policy == AugmentPolicy::trivial_augment) {
    const ImageOp op = drawn_op();
    const auto bin = static_cast<int>(random.below(kMagnitudeBins));
    add(op, bin, kMagnitudeBins, random.below(2) == 1);
  } else {
    const size_t pair = random.below(kPolicyPairs);
    for (const PolicyChange& change : policy_changes(options.policy).subspan(2 * pair, 2)) {
      const bool made = random.uniform() < change.probability, negative = random.below(2) == 0;
      if (made) add(change.op, change.bin, kPolicyBins, negative);
    }
  }
  return changes;
}

}  // namespace dtrain::data
