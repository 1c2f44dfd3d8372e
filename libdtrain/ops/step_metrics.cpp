#include "libdtrain/ops/step_metrics.h"

#include <algorithm>
#include <numeric>

#include "dtrain/core/dispatch.h"
#include "libdtrain/ops/pointwise_kernels.h"

namespace dtrain {

void add_step_sums(Context& context, std::span<const Tensor> sums, bool add, const Tensor& row) {
  DT_CHECK(sums.size() <= kMaxStepSums, "step metrics: ", sums.size(), " sums; there may be ", kMaxStepSums);
  const Shape expected{static_cast<int64_t>(sums.size()) + kStepColumns};
  DT_CHECK(row.shape() == expected, "step metrics: expected a row ", expected, ", found ", row.shape());
  for (const Tensor& x : sums)
    DT_CHECK(x.defined() && x.dtype() == DType::f32, "step metrics: expected sums of type f32");
  DT_DISPATCH(context, add_step_sums)(sums, add, row);
}

void finish_step_row(Context& context, const Tensor& norm, const Tensor& row, const Tensor& ring) {
  DT_CHECK(row.shape().rank() == 1 && row.dim(0) >= kStepColumns && ring.shape().rank() == 2 && ring.dim(0) > 0 &&
               ring.dim(1) == row.dim(0),
           "step metrics: expected a ring [rows, columns] for a row [columns], found ", ring.shape(), " for ",
           row.shape());
  DT_DISPATCH(context, finish_step_row)(norm, row, ring);
}

namespace cpu {

void add_step_sums(Context& context, std::span<const Tensor> sums, bool add, const Tensor& row) {
  float* const columns = row.data<float>();
  float* const own = columns + sums.size();
  if (!add) {
    std::fill_n(columns, row.count(), 0.0f);
    own[kStepRequests] = context.scalars()->request;
    own[kStepMark] = step_mark(context.scalars()->step);
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto values = sums[i].span<float>();
    columns[i] += std::accumulate(values.begin(), values.end(), 0.0f);
  }
}

void finish_step_row(Context& context, const Tensor& norm, const Tensor& row, const Tensor& ring) {
  const StepScalars& state = *context.scalars();
  float* const to =
      ring.data<float>() + static_cast<int64_t>(state.step % static_cast<uint64_t>(ring.dim(0))) * ring.dim(1);
  float* const own = to + row.dim(0) - kStepColumns;
  std::copy(row.data<float>(), row.data<float>() + row.dim(0) - kStepColumns + kStepSummed, to);
  own[kStepNorm] = *norm.data<float>();
  own[kStepFinite] = static_cast<float>(state.finite);
  own[kStepLossScale] = state.loss_scale;
  own[kStepSkipped] = static_cast<float>(state.skipped);
}

}  // namespace cpu

}  // namespace dtrain
