// What a step tells about itself: a row of numbers in a ring that stays on the device until the host asks for it.
#pragma once

#include "libdtrain/core/context.h"
#include "libdtrain/core/host_device.h"

namespace dtrain {

// Columns of a step's metrics [kStepMetrics] f32. The first kSummedMetrics are sums over its micro-batches, and over
// the ranks where there are several.
enum StepMetric {
  kMetricLoss,
  kMetricInTop1,
  kMetricInTop5,
  kMetricRows,
  kMetricRequests,  // StepInputs::request
  kMetricStep,      // step_mark() of the step it is
  kSummedMetrics,
  kMetricFinite = kSummedMetrics,
  kMetricNorm,
  kMetricLossScale,
  kMetricSkipped,
  kStepMetrics
};

// Tells a step from its neighbours, and stays exact when it is summed over up to 4096 ranks: where the sum is not that
// of one step, ranks have summed different steps.
DT_HD constexpr float step_mark(uint64_t step) { return static_cast<float>(step % 4096 + 1); }

// After the forward pass of a micro-step: its loss [1], the sums of its hits [n] and n. `add` false, for the first
// micro-step: stores them, the request and the step; true: adds them to what is there.
void add_step_metrics(Context& context, const Tensor& loss, const Tensor& in_top_1, const Tensor& in_top_5, bool add,
                      const Tensor& metrics);
// After the update: the sums, the gradient's norm [1] and, of the StepState, `finite`, `loss_scale` and `skipped` go to
// a row of the ring [rows, kStepMetrics]. It is row StepScalars::step % rows: chosen on the device, so that a captured
// step, whose addresses are fixed, writes to another one each time it is replayed.
void finish_step_metrics(Context& context, const Tensor& norm, const Tensor& metrics, const Tensor& ring);

namespace cpu {
void add_step_metrics(Context&, const Tensor& loss, const Tensor& in_top_1, const Tensor& in_top_5, bool add,
                      const Tensor& metrics);
void finish_step_metrics(Context&, const Tensor& norm, const Tensor& metrics, const Tensor& ring);
}  // namespace cpu

namespace cuda {
void add_step_metrics(Context&, const Tensor& loss, const Tensor& in_top_1, const Tensor& in_top_5, bool add,
                      const Tensor& metrics);
void finish_step_metrics(Context&, const Tensor& norm, const Tensor& metrics, const Tensor& ring);
}  // namespace cuda

}  // namespace dtrain
