// CUDA kernel of gather_rows: one thread per unit, the widest access that rows and addresses allow.
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/gather_rows.h"

namespace dtrain::cuda {
namespace {

// Rows of `units`; x has t rows per k rows of y, or t in total if `image_rows` is 0.
template <class Unit>
__global__ void __launch_bounds__(kThreads)
    gather_kernel(int64_t count, int64_t units, int64_t k, int64_t t, int64_t image_rows, const int32_t* indices,
                  const Unit* x, Unit* y) {
  const int64_t threads = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += threads) {
    const int64_t row = i / units, index = indices[row];
    y[i] = index < 0 || index >= t ? Unit{} : x[(row / k * image_rows + index) * units + i % units];
  }
}

template <class Unit>
bool gather_by(Context& context, const Tensor& x, const Tensor& indices, const Tensor& y) {
  const size_t row = y.bytes() / static_cast<size_t>(indices.count());
  if (row % sizeof(Unit) != 0 || !aligned(x.raw(), sizeof(Unit)) || !aligned(y.raw(), sizeof(Unit))) return false;
  const auto units = static_cast<int64_t>(row / sizeof(Unit)), count = indices.count() * units;
  launch(context, gather_kernel<Unit>, {blocks_for(context, count, kThreads), kThreads}, count, units, indices.dim(1),
         x.dim(1), x.dim(0) == 1 ? 0 : x.dim(1), indices.data<int32_t>(), static_cast<const Unit*>(x.raw()),
         static_cast<Unit*>(y.raw()));
  return true;
}

}  // namespace

void gather_rows(Context& context, const Tensor& x, const Tensor& indices, const Tensor& y) {
  if (gather_by<Pack<uint32_t>>(context, x, indices, y)) return;
  if (gather_by<uint32_t>(context, x, indices, y)) return;
  gather_by<uint8_t>(context, x, indices, y);
}

}  // namespace dtrain::cuda
