// Step metrics: a row of scalars per step in a ring buffer on the device, read by the host later.
#pragma once

#include <span>

#include "dtrain/core/context.h"
#include "dtrain/core/host_device.h"

namespace dtrain {

// A row has `sums` columns of the caller, then these. The first two are all-reduced with the caller's columns; the
// others are equal on all ranks.
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

// Maximum of caller-defined columns.
inline constexpr int kMaxStepSums = 32;

// Number that distinguishes neighbouring steps and stays exact when summed over up to 4096 ranks: an unexpected sum
// shows that ranks have reduced different steps.
DT_HD constexpr float step_mark(uint64_t step) { return static_cast<float>(step % 4096 + 1); }

// After the forward pass of a micro-step: column i of `row` [sums.size() + kStepColumns] becomes the sum of the
// elements of sums[i], f32. `add` false (first micro-step): overwrites, and sets the step's request and mark; true:
// accumulates. Throws Error if shapes differ or there are more than kMaxStepSums sums.
void add_step_sums(Context& context, std::span<const Tensor> sums, bool add, const Tensor& row);
// After the update: writes the summed columns of `row`, the gradient norm [1] and `finite`, `loss_scale`, `skipped` of
// StepState to row StepScalars::step % rows of the ring [rows, columns]. The device selects the row, so that launches
// of a CUDA graph, whose addresses are fixed, write different rows.
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
