// The metrics of a step: a row of numbers on the device, in a ring that stays there until the host asks for it.
#pragma once

#include <span>

#include "libdtrain/core/context.h"
#include "libdtrain/core/host_device.h"

namespace dtrain {

// A row holds `sums` columns that the caller defines, then these. The first two are summed over the ranks along with
// the caller's; the others are the same on all ranks.
enum StepColumn {
  kStepRequests,  // StepInputs::request
  kStepMark,      // step_mark() of the step
  kStepSummed,
  kStepFinite = kStepSummed,
  kStepNorm,
  kStepLossScale,
  kStepSkipped,
  kStepColumns
};

// The most columns that a caller may define.
inline constexpr int kMaxStepSums = 32;

// Tells a step from its neighbours, and stays exact when it is summed over up to 4096 ranks: where the sum is not that
// of one step, ranks have summed different steps.
DT_HD constexpr float step_mark(uint64_t step) { return static_cast<float>(step % 4096 + 1); }

// After the forward pass of a micro-step: column i of `row` [sums.size() + kStepColumns] becomes the sum of the
// elements of sums[i], f32. `add` false, for the first micro-step: stores them, the request and the mark of the step;
// true: adds them to what is there. Throws Error where shapes differ or there are more than kMaxStepSums sums.
void add_step_sums(Context& context, std::span<const Tensor> sums, bool add, const Tensor& row);
// After the update: the summed columns of `row`, the gradient's norm [1] and, from the StepState, `finite`,
// `loss_scale` and `skipped` go to a row of the ring [rows, columns]. It is row StepScalars::step % rows, chosen on the
// device, so that a captured step, whose addresses are fixed, writes to another one each time it is replayed.
void finish_step_row(Context& context, const Tensor& norm, const Tensor& row, const Tensor& ring);

namespace cpu {
void add_step_sums(Context&, std::span<const Tensor> sums, bool add, const Tensor& row);
void finish_step_row(Context&, const Tensor& norm, const Tensor& row, const Tensor& ring);
}  // namespace cpu

namespace cuda {
decltype(cpu::add_step_sums) add_step_sums;
decltype(cpu::finish_step_row) finish_step_row;
}  // namespace cuda

}  // namespace dtrain
