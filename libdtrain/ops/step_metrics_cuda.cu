// CUDA kernels of step metrics: one block per sum, since a micro-batch has few rows.
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/step_metrics.h"

namespace dtrain::cuda {
namespace {

struct MetricSums {
  const float* x[kMaxStepSums];
  int64_t count[kMaxStepSums];
};

// One block more than sums: it writes the further columns.
__global__ void __launch_bounds__(kThreads)
    add_step_sums_kernel(const StepScalars* scalars, MetricSums sums, int count, bool add, float* row) {
  const int column = static_cast<int>(blockIdx.x);
  if (column == count) {
    if (threadIdx.x != 0 || add) return;
    row[count + kStepRequests] = scalars->request;
    row[count + kStepMark] = step_mark(scalars->step);
    return;
  }
  float sum = 0;
  for (int64_t i = threadIdx.x; i < sums.count[column]; i += kThreads) sum += sums.x[column][i];
  sum = block_sum(sum, shared_memory<float>());
  if (threadIdx.x == 0) row[column] = (add ? row[column] : 0.0f) + sum;
}

__global__ void finish_step_row_kernel(const StepScalars* scalars, const float* norm, const float* row, int64_t columns,
                                       int64_t rows, float* ring) {
  float* const to = ring + static_cast<int64_t>(scalars->step % static_cast<uint64_t>(rows)) * columns;
  const int64_t sums = columns - kStepColumns;
  for (int64_t i = 0; i < sums + kStepSummed; ++i) to[i] = row[i];
  to[sums + kStepNorm] = *norm;
  to[sums + kStepFinite] = static_cast<float>(scalars->finite);
  to[sums + kStepLossScale] = scalars->loss_scale;
  to[sums + kStepSkipped] = static_cast<float>(scalars->skipped);
}

}  // namespace

void add_step_sums(Context& context, std::span<const Tensor> sums, bool add, const Tensor& row) {
  MetricSums arguments{};
  for (size_t i = 0; i < sums.size(); ++i) {
    arguments.x[i] = sums[i].data<float>();
    arguments.count[i] = sums[i].count();
  }
  const int count = static_cast<int>(sums.size());
  launch(context, add_step_sums_kernel, {static_cast<unsigned>(count) + 1, kThreads, kThreads / kWarp * sizeof(float)},
         context.scalars(), arguments, count, add, row.data<float>());
}

void finish_step_row(Context& context, const Tensor& norm, const Tensor& row, const Tensor& ring) {
  launch(context, finish_step_row_kernel, {1, 1}, context.scalars(), norm.data<float>(), row.data<float>(), row.dim(0),
         ring.dim(0), ring.data<float>());
}

}  // namespace dtrain::cuda
