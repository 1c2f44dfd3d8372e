#include <algorithm>

#include "libdtrain/cuda/cudnn_plan.h"
#include "libdtrain/ops/conv2d.h"
#include "libdtrain/ops/pointwise.h"
#include "tests/emulation/libraries.h"

namespace dtrain::cuda {
namespace {

bool supported(const ConvProblem& o) {
  const auto dtype = static_cast<DType>(o.dtype), output = static_cast<DType>(o.output_dtype);
  switch (o.kind) {
    case ConvKind::forward_statistics:
      return dtype == DType::f16;
    case ConvKind::forward_bias:
    case ConvKind::dgrad_add:
      return dtype == DType::bf16;
    case ConvKind::wgrad:
      return dtype != DType::f16 || output == DType::f16;
    default:
      return true;
  }
}

// The sums over n, p, q of what was written to the output, and of its squares.
void write_statistics(const Tensor& y, const ConvOperands& operands) {
  const int64_t channels = y.dim(3);
  auto* sum = static_cast<float*>(operands.sum);
  auto* sum_of_squares = static_cast<float*>(operands.sum_of_squares);
  std::fill_n(sum, channels, 0.0f);
  std::fill_n(sum_of_squares, channels, 0.0f);
  for (int64_t i = 0; i < y.count(); ++i) {
    const float value = y.data<float>()[i];
    sum[i % channels] += value;
    sum_of_squares[i % channels] += value * value;
  }
}

void convolve(Context& cpu, const ConvProblem& o, const ConvOperands& operands) {
  Conv2dOptions options;
  options.stride = {static_cast<int>(o.stride_h), static_cast<int>(o.stride_w)};
  options.dilation = {static_cast<int>(o.dilation_h), static_cast<int>(o.dilation_w)};
  options.padding = {static_cast<int>(o.pad_top), static_cast<int>(o.pad_bottom), static_cast<int>(o.pad_left),
                     static_cast<int>(o.pad_right)};
  options.groups = static_cast<int>(o.groups);
  const auto dtype = static_cast<DType>(o.dtype), output_dtype = static_cast<DType>(o.output_dtype);
  const Shape image{o.n, o.h, o.w, o.c}, filter{o.k, o.r, o.s, o.c / o.groups}, output{o.n, o.p, o.q, o.k};
  switch (o.kind) {
    case ConvKind::forward:
    case ConvKind::forward_bias:
    case ConvKind::forward_statistics: {
      const Tensor y = cpu.empty(output);
      cpu::conv2d(cpu, read(cpu, operands.image, image, dtype), read(cpu, operands.filter, filter, dtype),
                  read(cpu, operands.extra, {o.k}, DType::f32), options, y);
      write(y, operands.output, output_dtype);
      if (operands.sum) write_statistics(read(cpu, operands.output, output, output_dtype), operands);
      return;
    }
    case ConvKind::dgrad:
    case ConvKind::dgrad_add: {
      const Tensor dx = cpu.empty(image);
      cpu::conv2d_dgrad(cpu, read(cpu, operands.output, output, dtype), read(cpu, operands.filter, filter, dtype),
                        options, dx, false);
      if (operands.extra) cpu::accumulate(cpu, read(cpu, operands.extra, image, dtype), dx);
      return write(dx, operands.image, output_dtype);
    }
    case ConvKind::wgrad: {
      const Tensor dw = cpu.empty(filter);
      cpu::conv2d_wgrad(cpu, read(cpu, operands.image, image, dtype), read(cpu, operands.output, output, dtype),
                        options, dw, false);
      return write(dw, operands.filter, output_dtype);
    }
  }
}

}  // namespace

void ConvPlans::run(Context& context, const ConvProblem& problem, const ConvOperands& operands, const char* op) {
  DT_CHECK(milliseconds(context, problem, operands, op) != kUnsupported, op, ": no engine for ", name_of(problem));
  queue(context, [=](Context& cpu) { convolve(cpu, problem, operands); });
}

float ConvPlans::milliseconds(Context& context, const ConvProblem& problem, const ConvOperands&, const char* op) {
  const bool fresh = known_.insert(problem).second;
  DT_CHECK(!fresh || !context.capturing(), op, ": no plan yet for ", name_of(problem),
           ", and none can be made while a step is captured");
  return supported(problem) ? 0 : kUnsupported;
}

ConvPlans& Runtime::conv_plans() {
  if (!conv_plans_) conv_plans_ = std::make_shared<ConvPlans>();
  return *conv_plans_;
}

}  // namespace dtrain::cuda
