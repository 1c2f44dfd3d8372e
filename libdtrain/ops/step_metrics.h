// What a step tells about itself: a row of numbers in a ring that stays on the device until the host asks for it.
#pragma once

#include "libdtrain/core/context.h"

namespace dtrain {

// Columns of the ring [rows, kStepMetrics] f32. A step's row is StepScalars::step % rows: chosen on the device, so that
// a captured step, whose addresses are fixed, writes to another row each time it is replayed.
enum StepMetric {
  kMetricLoss,
  kMetricInTop1,
  kMetricInTop5,
  kMetricRows,
  kMetricFinite,
  kMetricNorm,
  kMetricLossScale,
  kMetricSkipped,
  kStepMetrics
};

// After the forward pass of a micro-step: its loss [1], the sums of its hits [n] and n. `add` false, for the first
// micro-step: stores them; true: adds them to what is there.
void add_step_metrics(Context& context, const Tensor& loss, const Tensor& in_top_1, const Tensor& in_top_5, bool add,
                      const Tensor& ring);
// After the update: notes the gradient's norm [1] and, of the StepState, `finite`, `loss_scale` and `skipped`.
void finish_step_metrics(Context& context, const Tensor& norm, const Tensor& ring);

namespace cpu {
void add_step_metrics(Context&, const Tensor& loss, const Tensor& in_top_1, const Tensor& in_top_5, bool add,
                      const Tensor& ring);
void finish_step_metrics(Context&, const Tensor& norm, const Tensor& ring);
}  // namespace cpu

namespace cuda {
void add_step_metrics(Context&, const Tensor& loss, const Tensor& in_top_1, const Tensor& in_top_5, bool add,
                      const Tensor& ring);
void finish_step_metrics(Context&, const Tensor& norm, const Tensor& ring);
}  // namespace cuda

}  // namespace dtrain
