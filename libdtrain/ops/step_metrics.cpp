#include "libdtrain/ops/step_metrics.h"

#include "libdtrain/core/dispatch.h"

namespace dtrain {

void add_step_metrics(Context& context, const Tensor& loss, const Tensor& in_top_1, const Tensor& in_top_5,
                      const Tensor& row) {
  DT_CHECK(in_top_1.shape() == in_top_5.shape(), "step metrics: ", in_top_1.shape(), " and ", in_top_5.shape(),
           " hits");
  DT_DISPATCH(context, add_step_metrics, loss, in_top_1, in_top_5, row);
}

void finish_step_metrics(Context& context, const Tensor& norm, const Tensor& row) {
  DT_DISPATCH(context, finish_step_metrics, norm, row);
}

namespace cpu {

void add_step_metrics(Context&, const Tensor& loss, const Tensor& in_top_1, const Tensor& in_top_5, const Tensor& row) {
  float* metrics = row.data<float>();
  metrics[kMetricLoss] += *loss.data<float>();
  for (float hit : in_top_1.span<float>()) metrics[kMetricInTop1] += hit;
  for (float hit : in_top_5.span<float>()) metrics[kMetricInTop5] += hit;
  metrics[kMetricRows] += static_cast<float>(in_top_1.count());
}

void finish_step_metrics(Context& context, const Tensor& norm, const Tensor& row) {
  float* metrics = row.data<float>();
  metrics[kMetricFinite] = static_cast<float>(context.scalars()->finite);
  metrics[kMetricNorm] = *norm.data<float>();
}

}  // namespace cpu

}  // namespace dtrain
