// Convolutions for inference on tapes that have PreparedWeights, on a CPU: a batch norm is folded into the weights and
// the bias; bias, residual and relu are the epilogue. The reference is the composition of conv2d, batch_norm and the
// addition of the residual, from which results differ by rounding.
#pragma once

#include <optional>
#include <vector>

#include "dtrain/autograd/prepared_weights.h"
#include "dtrain/ops/batch_norm.h"
#include "dtrain/ops/conv2d.h"

namespace dtrain {

// Batch norm by running statistics, folded into the convolution before it.
struct InferredNorm {
  Tensor gamma, beta;
  BatchNormState state;
  float epsilon;
};
// The epilogue: bias [k], which may be undefined, then batch norm, residual and activation.
struct InferenceEpilogue {
  Tensor bias{};
  std::optional<InferredNorm> norm{};
  Activation activation = Activation::none;
  const Var* residual = nullptr;  // of y's shape
  bool takes_residual = false;    // y may reuse its memory if no other tensor refers to it
};

// Memory for y: the residual's, if the epilogue may reuse it and it has this shape and type; else new.
Tensor result_memory(Context& context, const InferenceEpilogue& end, const Shape& shape, DType dtype);

// The key of prepared weights w with this epilogue: layers may share weights and differ in the epilogue.
PreparedWeights::Addresses addresses_of(const Tensor& w, const InferenceEpilogue& end);

// The epilogue as a scale for each filter, empty for 1, and a shift, empty for 0.
struct InferredAffine {
  std::vector<float> scale, shift;
};
InferredAffine affine_of(const InferenceEpilogue& end, int64_t k);

// Whether the tape infers so, and supports this convolution.
bool is_inferred(const Tape& tape, const Var& x, const Conv2dOptions& options = {});
Var inferred_conv(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& options, const InferenceEpilogue& end);
// y [n, out] of a fully connected layer with x [n, in], n > 0, w [out, in] and bias [out] or undefined.
Tensor inferred_linear(Tape& tape, const Var& x, const Var& w, const Tensor& bias);

}  // namespace dtrain
