// Crop samplers of TensorFlow and torchvision.
#include "dtrain/data/crop_sampler.h"

#include <algorithm>
#include <cmath>

#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

int round_to_int(float value) { return static_cast<int>(std::lrint(value)); }
int round_to_int(double value) { return static_cast<int>(std::lrint(value)); }

// Box in pixel coordinates, as in TensorFlow's sampler.
struct Corners {
  int x0, y0, x1, y1;
  float area() const { return static_cast<float>(int64_t{x1 - x0} * (y1 - y0)); }
};

Corners corners(const NormalizedBox& box, int width, int height) {
  for (const float side : {box.xmin, box.ymin, box.xmax, box.ymax})
    if (!(side >= 0 && side <= 1))
      throw Error(Fault::data, concat("bounding box (xmin ", box.xmin, ", ymin ", box.ymin, ", xmax ", box.xmax,
                                      ", ymax ", box.ymax, "): coordinates must be in [0, 1]"));
  const auto w = static_cast<float>(width), h = static_cast<float>(height);
  return {static_cast<int>(box.xmin * w), static_cast<int>(box.ymin * h), static_cast<int>(box.xmax * w),
          static_cast<int>(box.ymax * h)};
}

// Fraction of `object` inside `crop`; 0 for an empty object.
float covered(const Corners& object, const Window& crop) {
  if (object.area() < 1) return 0;
  const Corners common{std::max(object.x0, crop.x), std::max(object.y0, crop.y),
                       std::min(object.x1, crop.x + crop.width), std::min(object.y1, crop.y + crop.height)};
  return common.x0 > common.x1 || common.y0 > common.y1 ? 0 : common.area() / object.area();
}

// One attempt of the sampler for a given aspect ratio; false if the area limits cannot be met.
bool draw_crop(int width, int height, float aspect, const CropLimits& limits, RandomStream& random, Window& crop) {
  const float min_area = limits.min_area * static_cast<float>(width) * static_cast<float>(height);
  const float max_area = limits.max_area * static_cast<float>(width) * static_cast<float>(height);
  const auto width_of = [&](int h) { return round_to_int(static_cast<float>(h) * aspect); };
  int low = round_to_int(std::sqrt(min_area / aspect)), high = round_to_int(std::sqrt(max_area / aspect));
  if (width_of(high) > width) {
    constexpr double kEpsilon = 1e-7;
    high = static_cast<int>((width + 0.5 - kEpsilon) / static_cast<double>(aspect));
    if (width_of(high) > width) --high;
  }
  high = std::min(high, height);
  int h = std::min(low, high);
  if (h < high) h += static_cast<int>(random.below(static_cast<uint32_t>(high - h + 1)));
  const auto area_of = [&](int rows) { return static_cast<float>(width_of(rows)) * static_cast<float>(rows); };
  // Rounding may violate the limits by one row.
  if (area_of(h) < min_area) ++h;
  if (area_of(h) > max_area) --h;
  const int w = width_of(h);
  if (area_of(h) < min_area || area_of(h) > max_area || w > width || h > height || w <= 0 || h <= 0) return false;
  crop = {0, 0, w, h};
  if (h < height) crop.y = static_cast<int>(random.below(static_cast<uint32_t>(height - h)));
  if (w < width) crop.x = static_cast<int>(random.below(static_cast<uint32_t>(width - w)));
  return true;
}

}  // namespace

Window sample_distorted_box(int width, int height, std::span<const NormalizedBox> boxes, RandomStream& random,
                            const CropLimits& limits) {
  constexpr float kMinCovered = 0.1f;
  constexpr int kTries = 100;
  const NormalizedBox image{0, 0, 1, 1};
  if (boxes.empty()) boxes = {&image, 1};
  for (const NormalizedBox& box : boxes) corners(box, width, height);
  Window crop;
  for (int i = 0; i < kTries; ++i) {
    const float aspect = random.uniform(limits.min_aspect, limits.max_aspect);
    if (!draw_crop(width, height, aspect, limits, random, crop)) continue;
    for (const NormalizedBox& box : boxes)
      if (covered(corners(box, width, height), crop) >= kMinCovered) return crop;
  }
  return {0, 0, width, height};
}

Window random_resized_crop(int width, int height, RandomStream& random) {
  constexpr double kMinArea = 0.08, kMinAspect = 3.0 / 4, kMaxAspect = 4.0 / 3;
  constexpr int kTries = 10;
  const double area = static_cast<double>(width) * height;
  for (int i = 0; i < kTries; ++i) {
    const double target = area * (kMinArea + (1 - kMinArea) * random.uniform());
    const double aspect = std::exp(std::log(kMinAspect) + (std::log(kMaxAspect) - std::log(kMinAspect)) *
                                                              static_cast<double>(random.uniform()));
    const int w = round_to_int(std::sqrt(target * aspect)), h = round_to_int(std::sqrt(target / aspect));
    if (w <= 0 || w > width || h <= 0 || h > height) continue;
    const auto y = static_cast<int>(random.below(static_cast<uint32_t>(height - h + 1)));
    const auto x = static_cast<int>(random.below(static_cast<uint32_t>(width - w + 1)));
    return {x, y, w, h};
  }
  const double aspect = static_cast<double>(width) / height;
  Window crop{0, 0, width, height};
  if (aspect < kMinAspect) crop.height = round_to_int(width / kMinAspect);
  if (aspect > kMaxAspect) crop.width = round_to_int(height * kMaxAspect);
  crop.y = (height - crop.height) / 2;
  crop.x = (width - crop.width) / 2;
  return crop;
}

}  // namespace dtrain::data
