// A batch to time a network on.
#pragma once

#include <cstdint>

#include "libdtrain/core/context.h"

namespace dtrain::cli {

struct DrawnBatch {
  Tensor images;  // f32, [batch, size, size, 3], of [-1, 1)
  Tensor labels;  // i32, [batch], of [0, classes)
};
// The same in every run.
DrawnBatch draw_batch(Context& context, int64_t batch, int64_t size, int64_t classes);

}  // namespace dtrain::cli
