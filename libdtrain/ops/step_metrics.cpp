#include "libdtrain/ops/step_metrics.h"

#include <algorithm>
#include <numeric>

#include "libdtrain/core/dispatch.h"

namespace dtrain {
namespace {

void require_ring(const Tensor& ring) {
  DT_CHECK(ring.shape().rank() == 2 && ring.dim(0) > 0 && ring.dim(1) == kStepMetrics,
           "step metrics: expected a ring [rows, ", int{kStepMetrics}, "], found ", ring.shape());
}

}  // namespace

void add_step_metrics(Context& context, const Tensor& loss, const Tensor& in_top_1, const Tensor& in_top_5, bool add,
                      const Tensor& ring) {
  DT_CHECK(in_top_1.shape() == in_top_5.shape(), "step metrics: ", in_top_1.shape(), " and ", in_top_5.shape(),
           " hits");
  require_ring(ring);
  DT_DISPATCH(context, add_step_metrics, loss, in_top_1, in_top_5, add, ring);
}

void finish_step_metrics(Context& context, const Tensor& norm, const Tensor& ring) {
  require_ring(ring);
  DT_DISPATCH(context, finish_step_metrics, norm, ring);
}

namespace cpu {
namespace {

float* row_of_step(Context& context, const Tensor& ring) {
  return ring.data<float>() + context.scalars()->step % static_cast<uint64_t>(ring.dim(0)) * kStepMetrics;
}

float sum(const Tensor& x) {
  const auto values = x.span<float>();
  return std::accumulate(values.begin(), values.end(), 0.0f);
}

}  // namespace

void add_step_metrics(Context& context, const Tensor& loss, const Tensor& in_top_1, const Tensor& in_top_5, bool add,
                      const Tensor& ring) {
  float* row = row_of_step(context, ring);
  if (!add) std::fill_n(row, kStepMetrics, 0.0f);
  row[kMetricLoss] += *loss.data<float>();
  row[kMetricInTop1] += sum(in_top_1);
  row[kMetricInTop5] += sum(in_top_5);
  row[kMetricRows] += static_cast<float>(in_top_1.count());
}

void finish_step_metrics(Context& context, const Tensor& norm, const Tensor& ring) {
  float* row = row_of_step(context, ring);
  const StepState& state = *context.scalars();
  row[kMetricNorm] = *norm.data<float>();
  row[kMetricFinite] = static_cast<float>(state.finite);
  row[kMetricLossScale] = state.loss_scale;
  row[kMetricSkipped] = static_cast<float>(state.skipped);
}

}  // namespace cpu

}  // namespace dtrain
