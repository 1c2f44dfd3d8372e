#include "apps/cli/drawn_batch.h"

#include <vector>

#include "libdtrain/core/rng.h"

namespace dtrain::cli {

DrawnBatch draw_batch(Context& context, int64_t batch, int64_t size, int64_t classes) {
  const DrawnBatch drawn{context.empty({batch, size, size, 3}), context.empty({batch}, DType::i32)};
  RandomStream random(1, 0);
  std::vector<float> pixels(static_cast<size_t>(drawn.images.count()));
  for (float& pixel : pixels) pixel = random.uniform(-1, 1);
  std::vector<int32_t> labels(static_cast<size_t>(batch));
  for (int32_t& label : labels) label = static_cast<int32_t>(random.below(static_cast<uint32_t>(classes)));
  context.upload(pixels.data(), drawn.images);
  context.upload(labels.data(), drawn.labels);
  return drawn;
}

}  // namespace dtrain::cli
