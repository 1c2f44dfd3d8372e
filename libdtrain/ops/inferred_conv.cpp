#include "libdtrain/ops/inferred_conv.h"

#include <vector>

#include "libdtrain/autograd/prepared_weights.h"
#include "libdtrain/cpu/folded_conv.h"
#include "libdtrain/ops/batch_norm_math.h"

namespace dtrain {
namespace {

using Numbers = std::vector<float>;

// y = x * filters + shift
struct FoldedLayer {
  cpu::FoldedFilters filters;
  Numbers shift;  // [k], or empty
};

// What the end multiplies the sums of a filter by, and adds to them; empty: 1, and 0.
struct Affine {
  Numbers scale, shift;
};

Affine affine_of(const InferredEnd& end, int64_t k) {
  Affine affine;
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

std::shared_ptr<FoldedLayer> folded(const cpu::ConvShape& shape, const Tensor& w, const InferredEnd& end) {
  Affine affine = affine_of(end, shape.k);
  return std::shared_ptr<FoldedLayer>(
      new FoldedLayer{{shape, w.data<float>(), std::move(affine.scale)}, std::move(affine.shift)});
}

}  // namespace

bool is_inferred(const Tape& tape, const Var& x, const Conv2dOptions& options) {
  return tape.prepared() != nullptr && tape.context().is_cpu() && x.value.dtype() == DType::f32 && options.groups == 1;
}

Var inferred_conv(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& options, const InferredEnd& end) {
  Context& context = tape.context();
  const Tensor y = conv2d_output(context, x, w, options);
  DT_CHECK(!end.residual || (end.residual->shape() == y.shape() && end.residual->value.dtype() == DType::f32),
           "conv_bn_act: residual ", end.residual->shape(), " of ", end.residual->value.dtype(), ", expected ",
           y.shape(), " of f32");
  const cpu::ConvShape shape = cpu::shape_of(x.value, w.value, y, options);
  // Layers may share filters, and each have a norm of its own.
  const PreparedWeights::Addresses addresses{w.value.raw(), end.norm ? end.norm->gamma.raw() : nullptr};
  const auto layer = tape.prepared()->of<FoldedLayer>(addresses, [&] { return folded(shape, w.value, end); });
  cpu::folded_conv(context, shape, x.value.data<float>(), layer->filters,
                   {.bias = layer->shift.empty() ? nullptr : layer->shift.data(),
                    .residual = end.residual ? end.residual->value.data<float>() : nullptr,
                    .relu = end.activation == Activation::relu},
                   y.data<float>());
  tape.op_watch().note(options);
  tape.count_flops(conv2d_flops(y.shape(), w.shape()));
  return tape.record("conv2d", y, {&x, &w}, {});
}

}  // namespace dtrain
