// CPU and CUDA kernels of dtrain/ops/pool.h.
#pragma once

#include "dtrain/ops/pool.h"

namespace dtrain {

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
