// What a step tells about itself: a row of numbers that stays on the device until the host asks for it.
#pragma once

#include "libdtrain/core/context.h"

namespace dtrain {

// Columns of a row [kStepMetrics] f32.
enum StepMetric { kMetricLoss, kMetricInTop1, kMetricInTop5, kMetricRows, kMetricFinite, kMetricNorm, kStepMetrics };

// After the forward pass of a micro-step: adds its loss [1], the sums of its hits [n] and n to `row`, which is zero
// before the first.
void add_step_metrics(Context& context, const Tensor& loss, const Tensor& in_top_1, const Tensor& in_top_5,
                      const Tensor& row);
// After the update: notes StepScalars::finite and the gradient's norm [1].
void finish_step_metrics(Context& context, const Tensor& norm, const Tensor& row);

namespace cpu {
void add_step_metrics(Context&, const Tensor& loss, const Tensor& in_top_1, const Tensor& in_top_5, const Tensor& row);
void finish_step_metrics(Context&, const Tensor& norm, const Tensor& row);
}  // namespace cpu

}  // namespace dtrain
