// Batches to time a network on.
#pragma once

#include <cstdint>

#include "libdtrain/core/context.h"

namespace dtrain::cli {

struct DrawnBatch {
  Tensor images;  // f32, [batch, size, size, 3]
  Tensor labels;  // i32, [batch], of [0, classes)
};
// Pixels of [-1, 1); the same in every run.
DrawnBatch draw_batch(Context& context, int64_t batch, int64_t size, int64_t classes);

// As tf_cnn_benchmarks' synthetic data: a truncated normal of mean 127 and standard deviation 60 that is fed to the
// model as it is, and labels of [0, classes - 1).
DrawnBatch draw_tf_cnn_batch(Context& context, int64_t batch, int64_t size, int64_t classes, uint64_t seed);

}  // namespace dtrain::cli
