#include "dtrain/data/erasing.h"

#include <cmath>

#include "dtrain/core/error.h"

namespace dtrain::data {

void check(const ErasingOptions& options) {
  DT_CHECK(options.probability >= 0 && options.probability <= 1 && options.min_area > 0 &&
               options.min_area <= options.max_area && options.max_area <= 1 && options.min_aspect > 0 &&
               options.min_aspect <= options.max_aspect,
           "random erasing with probability ", options.probability, " of areas from ", options.min_area, " to ",
           options.max_area, " and aspects from ", options.min_aspect, " to ", options.max_aspect);
}

Window draw_erased(const ErasingOptions& options, int width, int height, RandomStream& random) {
  constexpr int kTries = 10;
  if (!(random.uniform() < options.probability)) return {};
  const float low = std::log(options.min_aspect), high = std::log(options.max_aspect);
  for (int i = 0; i < kTries; ++i) {
    const float area =
        static_cast<float>(width) * static_cast<float>(height) * random.uniform(options.min_area, options.max_area);
    const float aspect = std::exp(random.uniform(low, high));
    const auto h = static_cast<int>(std::lrint(std::sqrt(area * aspect)));
    const auto w = static_cast<int>(std::lrint(std::sqrt(area / aspect)));
    if (h >= height || w >= width) continue;
    const auto y = static_cast<int>(random.below(static_cast<uint32_t>(height - h + 1)));
    return {static_cast<int>(random.below(static_cast<uint32_t>(width - w + 1))), y, w, h};
  }
  return {};
}

}  // namespace dtrain::data
