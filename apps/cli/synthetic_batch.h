// Synthetic batches for benchmarks.
#pragma once

#include <cstdint>

#include "dtrain/core/context.h"

namespace dtrain::cli {

struct SyntheticBatch {
  Tensor images;  // f32, [batch, size, size, 3]
  Tensor labels;  // i32, [batch], of [0, classes)
};
// Pixels in [-1, 1), with a fixed seed.
SyntheticBatch make_synthetic_batch(Context& context, int64_t batch, int64_t size, int64_t classes);

// tf_cnn_benchmarks' synthetic data: truncated normal with mean 127 and standard deviation 60, without preprocessing,
// and labels in [0, classes - 1).
SyntheticBatch make_tf_cnn_batch(Context& context, int64_t batch, int64_t size, int64_t classes, uint64_t seed);

}  // namespace dtrain::cli
