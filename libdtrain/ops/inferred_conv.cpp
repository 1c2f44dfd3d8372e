#include "libdtrain/ops/inferred_conv.h"

#include <algorithm>
#include <vector>

#include "libdtrain/autograd/prepared_weights.h"
#include "libdtrain/core/thread_count.h"
#include "libdtrain/cpu/folded_conv.h"
#include "libdtrain/cpu/onednn_run.h"
#include "libdtrain/cpu/winograd.h"
#include "libdtrain/ops/batch_norm_math.h"
#include "libdtrain/ops/quantized_conv.h"

namespace dtrain {
namespace {

using Numbers = std::vector<float>;

// y = x * filters + shift
struct FoldedLayer {
  cpu::FoldedFilters filters;
  Numbers shift;  // [k], or empty
};

}  // namespace

InferredAffine affine_of(const InferredEnd& end, int64_t k) {
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

std::shared_ptr<FoldedLayer> folded(const cpu::ConvShape& shape, const Tensor& w, const InferredEnd& end) {
  InferredAffine affine = affine_of(end, shape.k);
  return std::shared_ptr<FoldedLayer>(
      new FoldedLayer{{shape, w.data<float>(), std::move(affine.scale)}, std::move(affine.shift)});
}

void check_residual(const InferredEnd& end, const Tensor& y) {
  DT_CHECK(!end.residual || (end.residual->shape() == y.shape() && end.residual->value.dtype() == y.dtype()),
           "conv_bn_act: residual ", end.residual->shape(), " of ", end.residual->value.dtype(), ", expected ",
           y.shape(), " of ", y.dtype());
}

// The same in bf16, or in f32 in Winograd's form where that is faster for the shape.
struct FoldedBf16Layer {
  cpu::Bf16Filters filters;
  Numbers shift;  // [k]
};
struct FoldedWinogradLayer {
  Tensor filters;
  Numbers shift;
};

// Tiles from which Winograd's algorithm beats products of bf16: its filters, which take eight times the memory, have to
// be worth reading.
constexpr int64_t kLeastTiles = 256;

// w as floats, each of the k multiplied by its scale.
Numbers scaled_filters(const Tensor& w, const Numbers& scale) {
  const int64_t inner = w.count() / w.dim(0);
  Numbers filters(static_cast<size_t>(w.count()));
  for (int64_t i = 0; i < w.count(); ++i)
    filters[static_cast<size_t>(i)] =
        (scale.empty() ? 1.0f : scale[static_cast<size_t>(i / inner)]) * w.data<Bf16>()[i];
  return filters;
}

std::shared_ptr<FoldedWinogradLayer> folded_to_winograd(Context& context, const Tensor& w, const InferredEnd& end) {
  InferredAffine affine = affine_of(end, w.dim(0));
  affine.shift.resize(static_cast<size_t>(w.dim(0)));
  const Numbers filters = scaled_filters(w, affine.scale);
  return std::make_shared<FoldedWinogradLayer>(
      FoldedWinogradLayer{cpu::winograd_filters(context, w.dim(3), w.dim(0), filters.data()), std::move(affine.shift)});
}

std::shared_ptr<FoldedBf16Layer> folded_to_bf16(const Tensor& w, const InferredEnd& end) {
  InferredAffine affine = affine_of(end, w.dim(0));
  affine.shift.resize(static_cast<size_t>(w.dim(0)));
  const Numbers exact = scaled_filters(w, affine.scale);
  std::vector<Bf16> filters(exact.size());
  std::ranges::transform(exact, filters.begin(), to_bf16);
  return std::shared_ptr<FoldedBf16Layer>(
      new FoldedBf16Layer{cpu::Bf16Filters(std::move(filters)), std::move(affine.shift)});
}

Tensor bf16_conv(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& options, const InferredEnd& end) {
  Context& context = tape.context();
  const Tensor y = conv2d_output(context, x, w, options);
  check_residual(end, y);
  const PreparedWeights::Addresses addresses{w.value.raw(), end.norm ? end.norm->gamma.raw() : nullptr};
  const cpu::ConvShape shape = cpu::shape_of(x.value, w.value, y, options);
  cpu::EndOf<Bf16> after{.residual = end.residual ? end.residual->value.data<Bf16>() : nullptr,
                         .relu = end.activation == Activation::relu};
  if (const auto winograd = cpu::winograd_of(context, shape, kLeastTiles)) {
    const auto layer =
        tape.prepared()->of<FoldedWinogradLayer>(addresses, [&] { return folded_to_winograd(context, w.value, end); });
    after.bias = layer->shift.data();
    cpu::winograd_forward(context, *winograd, x.value.data<Bf16>(), layer->filters, after, y.data<Bf16>());
    return y;
  }
  const auto layer = tape.prepared()->of<FoldedBf16Layer>(addresses, [&] { return folded_to_bf16(w.value, end); });
  after.bias = layer->shift.data();
  cpu::direct_conv_inferred(context, shape, x.value.data<Bf16>(), layer->filters, after, y.data<Bf16>());
  return y;
}

Tensor floats_conv(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& options, const InferredEnd& end) {
  Context& context = tape.context();
  const Tensor y = conv2d_output(context, x, w, options);
  check_residual(end, y);
  const cpu::ConvShape shape = cpu::shape_of(x.value, w.value, y, options);
  // Layers may share filters, and each have a norm of its own.
  const PreparedWeights::Addresses addresses{w.value.raw(), end.norm ? end.norm->gamma.raw() : nullptr};
  const auto layer = tape.prepared()->of<FoldedLayer>(addresses, [&] { return folded(shape, w.value, end); });
  cpu::folded_conv(context, shape, x.value.data<float>(), layer->filters,
                   {.bias = layer->shift.empty() ? nullptr : layer->shift.data(),
                    .residual = end.residual ? end.residual->value.data<float>() : nullptr,
                    .relu = end.activation == Activation::relu},
                   y.data<float>());
  return y;
}

}  // namespace

bool is_inferred(const Tape& tape, const Var& x, const Conv2dOptions& options) {
  const DType dtype = x.value.dtype();
  if (tape.prepared() == nullptr || !tape.context().is_cpu() || options.groups != 1) return false;
  return dtype == DType::f32 || dtype == DType::u8 || (dtype == DType::bf16 && cpu::has_bf16(tape.context()));
}

Var inferred_conv(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& options, const InferredEnd& end) {
  const ThreadCount threads(tape.context().threads());
  const QuantizedLayer* const quantized = tape.prepared()->quantized(w.value.raw());
  const Tensor y = quantized                        ? quantized_conv(tape, x.value, w.value, options, *quantized, end)
                   : x.value.dtype() == DType::bf16 ? bf16_conv(tape, x, w, options, end)
                                                    : floats_conv(tape, x, w, options, end);
  const Var bias{end.bias, -1};
  tape.op_watch().note(options);
  tape.count_flops(conv2d_flops(y.shape(), w.shape()));
  const Var none;
  return tape.record("conv2d", y, {&x, &w, &bias, end.residual ? end.residual : &none}, {});
}

}  // namespace dtrain
