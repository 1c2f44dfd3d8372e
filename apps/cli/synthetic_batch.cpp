#include "apps/cli/synthetic_batch.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "dtrain/core/rng.h"

namespace dtrain::cli {

SyntheticBatch make_synthetic_batch(Context& context, int64_t batch, int64_t size, int64_t classes) {
  const SyntheticBatch drawn{context.empty({batch, size, size, 3}), context.empty({batch}, DType::i32)};
  RandomStream random(1, 0);
  std::vector<float> pixels(static_cast<size_t>(drawn.images.count()));
  for (float& pixel : pixels) pixel = random.uniform(-1, 1);
  std::vector<int32_t> labels(static_cast<size_t>(batch));
  for (int32_t& label : labels) label = static_cast<int32_t>(random.below(static_cast<uint32_t>(classes)));
  context.upload(pixels.data(), drawn.images);
  context.upload(labels.data(), drawn.labels);
  return drawn;
}

SyntheticBatch make_tf_cnn_batch(Context& context, int64_t batch, int64_t size, int64_t classes, uint64_t seed) {
  RandomStream random(seed, /*stream=*/0x73796e7468);
  std::vector<float> pixels(static_cast<size_t>(batch * size * size * 3));
  for (float& pixel : pixels) {
    float deviate = random.normal();
    while (std::abs(deviate) > 2) deviate = random.normal();
    pixel = 127 + 60 * deviate;
  }
  std::vector<int32_t> labels(static_cast<size_t>(batch));
  const auto drawn = static_cast<uint32_t>(std::max<int64_t>(1, classes - 1));
  for (int32_t& label : labels) label = static_cast<int32_t>(random.below(drawn));
  const SyntheticBatch made{context.empty({batch, size, size, 3}), context.empty({batch}, DType::i32)};
  context.upload(pixels.data(), made.images);
  context.upload(labels.data(), made.labels);
  return made;
}

}  // namespace dtrain::cli
