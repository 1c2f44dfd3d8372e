// Pooling of NHWC images.
#pragma once

#include "dtrain/ops/conv2d.h"

namespace dtrain {

// Pooling windows. As in PyTorch, padding defaults to 0; kernel and stride have no default.
struct PoolOptions {
  Size2 kernel;
  Size2 stride;
  Padding padding = 0;
  bool count_padding = true;  // average pooling divides by kernel.h * kernel.w, as in torch; false: by the valid cells
};

// The max-pool of torchvision's ResNets.
inline const PoolOptions kResNetPool{.kernel = 3, .stride = 2, .padding = 1};

// Outputs have the type of x. All throw if no window fits or a window could lie in padding alone.

// Max pooling [n, h, w, c] -> [n, p, q, c], windows of at most 255 cells; padding never wins. On a CPU also for u8
// images, without gradient. Of equal cells the first in row-major order gets the gradient.
Var max_pool(Tape& tape, const Var& x, const PoolOptions& options);
// Average pooling [n, h, w, c] -> [n, p, q, c], see count_padding.
Var average_pool(Tape& tape, const Var& x, const PoolOptions& options);
// Mean over h and w: [n, h, w, c] -> [n, c].
Var global_average_pool(Tape& tape, const Var& x);

// Output shape of a pooling. Throws, with the reason, if there is none.
Shape pool_shape(const Shape& x, const PoolOptions& options);

}  // namespace dtrain
