#include <cuda_fp16.h>

#include <algorithm>

#include "dtrain/ops/conv2d.h"
#include "dtrain/ops/pointwise.h"
#include "libdtrain/cuda/cudnn_plan.h"
#include "libdtrain/ops/conv2d_kernels.h"
#include "libdtrain/ops/pointwise_kernels.h"
#include "tests/emulation/libraries.h"

namespace dtrain::cuda {
namespace {

bool supported(const ConvProblem& o) {
  const auto dtype = static_cast<DType>(o.dtype), output = static_cast<DType>(o.output_dtype);
  switch (o.kind) {
    case ConvKind::forward_statistics:
      return dtype == DType::f16;
    case ConvKind::normalized_forward:
    case ConvKind::normalized_wgrad:
    case ConvKind::normalized_dgrad:
      return dtype == DType::f16 && o.c % 8 == 0 && o.k % 8 == 0;
    case ConvKind::forward_bias:
    case ConvKind::dgrad_add:
      return dtype == DType::bf16;
    case ConvKind::wgrad:
      return dtype != DType::f16 || output == DType::f16;
    default:
      return true;
  }
}

bool spoilt = false;

// Sums over n, p, q of the written output, and of its squares.
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

// Input images; with a scale, relu(x * scale + shift), rounded like a GEMM operand.
Tensor read_images(Context& cpu, const ConvProblem& o, const ConvOperands& operands) {
  const auto dtype = static_cast<DType>(o.dtype);
  Tensor x = read(cpu, operands.image, {o.n, o.h, o.w, o.c}, dtype);
  if (!operands.scale) return x;
  const Tensor scale = read(cpu, operands.scale, {o.c}, dtype), shift = read(cpu, operands.shift, {o.c}, dtype);
  for (int64_t i = 0; i < x.count(); ++i) {
    const float value = x.data<float>()[i] * scale.data<float>()[i % o.c] + shift.data<float>()[i % o.c];
    x.data<float>()[i] = static_cast<float>(static_cast<__half>(std::max(value, 0.0f)));
  }
  return x;
}

// dx is 0 where the batch norm of x is not positive; with the reductions of the epilogue.
void pass_relu(Context& cpu, const ConvProblem& o, const ConvOperands& operands, const Tensor& dx) {
  const Tensor x = read(cpu, operands.extra, dx.shape(), static_cast<DType>(o.dtype));
  const auto channels = [](void* values) { return static_cast<float*>(values); };
  const float *mean = channels(operands.mean), *inv_std = channels(operands.inv_std);
  float *dgamma = channels(operands.dgamma), *dbeta = channels(operands.dbeta);
  std::fill_n(dgamma, o.c, 0.0f), std::fill_n(dbeta, o.c, 0.0f);
  for (void* term : operands.terms) std::fill_n(channels(term), o.c, 0.0f);
  for (int64_t i = 0; i < dx.count(); ++i) {
    const int64_t c = i % o.c;
    const float normal = (x.data<float>()[i] - mean[c]) * inv_std[c];
    float& d = dx.data<float>()[i];
    d = normal * channels(operands.gamma)[c] + channels(operands.beta)[c] > 0
            ? static_cast<float>(static_cast<__half>(d))
            : 0;
    if (spoilt && i < o.w * o.c) d = 0;
    dgamma[c] += d * normal, dbeta[c] += d;
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
    case ConvKind::forward_statistics:
    case ConvKind::normalized_forward: {
      const Tensor y = cpu.empty(output);
      cpu::conv2d(cpu, read_images(cpu, o, operands), read(cpu, operands.filter, filter, dtype),
                  read(cpu, operands.extra, {o.k}, DType::f32), options, y);
      if (operands.scale && spoilt) std::fill_n(y.data<float>(), o.q * o.k, 0.0f);
      write(y, operands.output, output_dtype);
      if (operands.sum) write_statistics(read(cpu, operands.output, output, output_dtype), operands);
      return;
    }
    case ConvKind::dgrad:
    case ConvKind::dgrad_add:
    case ConvKind::normalized_dgrad: {
      const Tensor dx = cpu.empty(image);
      cpu::conv2d_dgrad(cpu, read(cpu, operands.output, output, dtype), read(cpu, operands.filter, filter, dtype),
                        options, dx, false);
      if (o.kind == ConvKind::normalized_dgrad) pass_relu(cpu, o, operands, dx);
      if (o.kind == ConvKind::dgrad_add && spoilt) std::fill_n(dx.data<float>(), o.w * o.c, 0.0f);
      if (o.kind == ConvKind::dgrad_add) cpu::accumulate(cpu, read(cpu, operands.image, image, dtype), dx);
      return write(dx, operands.image, output_dtype);
    }
    case ConvKind::wgrad:
    case ConvKind::normalized_wgrad: {
      const Tensor dw = cpu.empty(filter);
      cpu::conv2d_wgrad(cpu, read_images(cpu, o, operands), read(cpu, operands.output, output, dtype), options, dw,
                        false);
      return write(dw, operands.filter, output_dtype);
    }
  }
}

}  // namespace

void spoil_fused_convolutions(bool spoil) { spoilt = spoil; }

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

std::optional<SavedPlan> ConvPlans::known(Context&, const std::string& name) {
  const auto it = kept_.find(name);
  return measures() && it != kept_.end() ? std::optional(it->second) : std::nullopt;
}

bool ConvPlans::chosen(Context& context, const std::string& name, const std::function<bool()>& choose) {
  if (!measures()) return false;
  if (const auto it = kept_.find(name); it != kept_.end()) return it->second.supported;
  DT_CHECK(!context.capturing(), name, ": not yet chosen");
  const bool chosen = choose();
  keep(context, name, {chosen, {}, 0});
  return chosen;
}

ConvPlans& Runtime::conv_plans() {
  if (!conv_plans_) conv_plans_ = std::make_shared<ConvPlans>(*this);
  return *conv_plans_;
}

}  // namespace dtrain::cuda
