#include "dtrain/ops/inferred_conv.h"

#include <vector>

#include "dtrain/core/profiler.h"
#include "dtrain/core/thread_count.h"
#include "dtrain/ops/quantized_conv.h"
#include "libdtrain/cpu/conv/algorithms.h"
#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/ops/batch_norm_math.h"
#include "libdtrain/ops/conv2d_kernels.h"

namespace dtrain {
namespace {

using Numbers = std::vector<float>;

// y = x * weights + shift
template <class T>
struct FoldedLayer {
  cpu::PackedWeights<T> weights;
  Numbers shift;  // [k], or empty
};

}  // namespace

PreparedWeights::Addresses addresses_of(const Tensor& w, const InferenceEpilogue& end) {
  return {w.raw(), end.norm ? end.norm->gamma.raw() : nullptr, end.bias ? end.bias.raw() : nullptr};
}

Tensor result_memory(Context& context, const InferenceEpilogue& end, const Shape& shape, DType dtype) {
  if (!end.residual || !end.takes_residual) return context.empty(shape, dtype);
  const Tensor& residual = end.residual->value;
  const bool fits = residual.unique() && residual.shape() == shape && residual.dtype() == dtype;
  return fits ? residual : context.empty(shape, dtype);
}

InferredAffine affine_of(const InferenceEpilogue& end, int64_t k) {
  InferredAffine affine;
  if (end.bias) affine.shift.assign(end.bias.data<float>(), end.bias.data<float>() + k);
  if (!end.norm) return affine;
  const InferredNorm& norm = *end.norm;
  for (const Tensor* part : {&norm.gamma, &norm.beta, &norm.state.running_mean, &norm.state.running_var})
    DT_CHECK(part->shape() == Shape{k} && part->dtype() == DType::f32, "conv_bn_act: a batch norm of ", part->shape(),
             " of ", part->dtype(), ", expected [", k, "] of f32");
  affine.shift.resize(static_cast<size_t>(k));
  for (int64_t i = 0; i < k; ++i) {
    const float scale =
        norm.gamma.data<float>()[i] * inverse_deviation(norm.state.running_var.data<float>()[i], norm.epsilon);
    const double bias = affine.shift[static_cast<size_t>(i)], mean = norm.state.running_mean.data<float>()[i];
    affine.scale.push_back(scale);
    affine.shift[static_cast<size_t>(i)] = static_cast<float>((bias - mean) * scale + norm.beta.data<float>()[i]);
  }
  return affine;
}

namespace {

void check_residual(const InferenceEpilogue& end, const Tensor& y) {
  DT_CHECK(!end.residual || (end.residual->shape() == y.shape() && end.residual->value.dtype() == y.dtype()),
           "conv_bn_act: residual ", end.residual->shape(), " of ", end.residual->value.dtype(), ", expected ",
           y.shape(), " of ", y.dtype());
}

template <class T>
void folded_conv_as(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& options, const InferenceEpilogue& end,
                    const Tensor& y) {
  using Layer = FoldedLayer<T>;
  const cpu::ConvShape shape = cpu::shape_of(x.value, w.value, y, options);
  const auto layer = tape.prepared()->of<Layer>(addresses_of(w.value, end), [&] {
    InferredAffine affine = affine_of(end, shape.k);
    return std::shared_ptr<Layer>(
        new Layer{{shape, w.value.data<T>(), std::move(affine.scale)}, std::move(affine.shift)});
  });
  const KernelSpan span(tape.context().profiler(), "inferred_conv");
  const cpu::Epilogue<T> epilogue{.bias = layer->shift.empty() ? nullptr : layer->shift.data(),
                                  .residual = end.residual ? end.residual->value.data<T>() : nullptr,
                                  .relu = end.activation == Activation::relu};
  cpu::run_inference_conv<T>(tape.context(), shape, {x.value.data<T>(), &layer->weights, epilogue, y.data<T>()});
}

Tensor inference_conv(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& options,
                      const InferenceEpilogue& end) {
  const Tensor y = result_memory(tape.context(), end, conv2d_output_shape(x, w, options), x.value.dtype());
  check_residual(end, y);
  cpu::with_elements(y.dtype(), [&]<class T>(T) { folded_conv_as<T>(tape, x, w, options, end, y); });
  return y;
}

Tensor infer(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& options, const InferenceEpilogue& end) {
  const ThreadCount threads(tape.context().threads());
  const QuantizedLayer* const quantized = tape.prepared()->quantized(w.value.raw());
  return quantized ? quantized_conv(tape, x.value, w.value, options, *quantized, end)
                   : inference_conv(tape, x, w, options, end);
}

}  // namespace

bool is_inferred(const Tape& tape, const Var& x, const Conv2dOptions& options) {
  const DType dtype = x.value.dtype();
  if (tape.prepared() == nullptr || !tape.context().is_cpu() || options.groups != 1) return false;
  return dtype == DType::f32 || dtype == DType::u8 ||
         (dtype == DType::bf16 && tape.context().kernels().capabilities.bf16);
}

Var inferred_conv(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& options, const InferenceEpilogue& end) {
  const Tensor y = infer(tape, x, w, options, end);
  const Var bias{end.bias, -1};
  tape.op_observer().note(options);
  tape.count_flops(conv2d_flops(y.shape(), w.shape()));
  const Var none;
  return tape.record("conv2d", y, {&x, &w, &bias, end.residual ? end.residual : &none}, {});
}

Tensor inferred_linear(Tape& tape, const Var& x, const Var& w, const Tensor& bias) {
  const auto pixels = [](const Var& rows) {
    return Var{rows.value.view({rows.value.dim(0), 1, 1, rows.value.dim(1)}), -1};
  };
  return infer(tape, pixels(x), pixels(w), {}, {.bias = bias}).view({x.value.dim(0), w.value.dim(0)});
}

}  // namespace dtrain
