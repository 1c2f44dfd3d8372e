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

namespace cpu {
// `argmax` [n, p, q, c] u8: row-major index of the maximum within its window, of up to 255 cells. May be undefined if
// no gradient is needed.
void max_pool(Context&, const Tensor& x, const PoolOptions&, const Tensor& y, const Tensor& argmax);
void max_pool_grad(Context&, const Tensor& dy, const Tensor& argmax, const PoolOptions&, const Tensor& dx, bool add);
void average_pool(Context&, const Tensor& x, const PoolOptions&, const Tensor& y);
void average_pool_grad(Context&, const Tensor& dy, const PoolOptions&, const Tensor& dx, bool add);
void global_average_pool(Context&, const Tensor& x, const Tensor& y);
void global_average_pool_grad(Context&, const Tensor& dy, const Tensor& dx, bool add);
}  // namespace cpu

template <>
inline constexpr bool takes_bf16<cpu::max_pool> = true;
template <>
inline constexpr bool takes_bf16<cpu::max_pool_grad> = true;
template <>
inline constexpr bool takes_bf16<cpu::global_average_pool> = true;
template <>
inline constexpr bool takes_bf16<cpu::global_average_pool_grad> = true;

namespace cuda {
decltype(cpu::max_pool) max_pool;
decltype(cpu::max_pool_grad) max_pool_grad;
decltype(cpu::average_pool) average_pool;
decltype(cpu::average_pool_grad) average_pool_grad;
decltype(cpu::global_average_pool) global_average_pool;
decltype(cpu::global_average_pool_grad) global_average_pool_grad;
}  // namespace cuda

}  // namespace dtrain
