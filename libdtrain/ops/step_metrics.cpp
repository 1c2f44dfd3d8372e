#include "libdtrain/ops/step_metrics.h"

#include <algorithm>
#include <numeric>

#include "libdtrain/core/dispatch.h"

namespace dtrain {
namespace {

void require_metrics(const Tensor& metrics) {
  DT_CHECK(metrics.shape() == Shape{kStepMetrics}, "step metrics: expected [", int{kStepMetrics}, "], found ",
           metrics.shape());
}

}  // namespace

void add_step_metrics(Context& context, const Tensor& loss, const Tensor& in_top_1, const Tensor& in_top_5, bool add,
                      const Tensor& metrics) {
  DT_CHECK(in_top_1.shape() == in_top_5.shape(), "step metrics: ", in_top_1.shape(), " and ", in_top_5.shape(),
           " hits");
  require_metrics(metrics);
  DT_DISPATCH(context, add_step_metrics, loss, in_top_1, in_top_5, add, metrics);
}

void finish_step_metrics(Context& context, const Tensor& norm, const Tensor& metrics, const Tensor& ring) {
  require_metrics(metrics);
  DT_CHECK(ring.shape().rank() == 2 && ring.dim(0) > 0 && ring.dim(1) == kStepMetrics,
           "step metrics: expected a ring [rows, ", int{kStepMetrics}, "], found ", ring.shape());
  DT_DISPATCH(context, finish_step_metrics, norm, metrics, ring);
}

namespace cpu {
namespace {

float sum(const Tensor& x) {
  const auto values = x.span<float>();
  return std::accumulate(values.begin(), values.end(), 0.0f);
}

}  // namespace

void add_step_metrics(Context& context, const Tensor& loss, const Tensor& in_top_1, const Tensor& in_top_5, bool add,
                      const Tensor& metrics) {
  float* row = metrics.data<float>();
  if (!add) {
    std::fill_n(row, kStepMetrics, 0.0f);
    row[kMetricRequests] = context.scalars()->request;
    row[kMetricStep] = step_mark(context.scalars()->step);
  }
  row[kMetricLoss] += *loss.data<float>();
  row[kMetricInTop1] += sum(in_top_1);
  row[kMetricInTop5] += sum(in_top_5);
  row[kMetricRows] += static_cast<float>(in_top_1.count());
}

void finish_step_metrics(Context& context, const Tensor& norm, const Tensor& metrics, const Tensor& ring) {
  const StepScalars& state = *context.scalars();
  float* row = ring.data<float>() + state.step % static_cast<uint64_t>(ring.dim(0)) * kStepMetrics;
  std::copy_n(metrics.data<float>(), int{kSummedMetrics}, row);
  row[kMetricNorm] = *norm.data<float>();
  row[kMetricFinite] = static_cast<float>(state.finite);
  row[kMetricLossScale] = state.loss_scale;
  row[kMetricSkipped] = static_cast<float>(state.skipped);
}

}  // namespace cpu

}  // namespace dtrain
