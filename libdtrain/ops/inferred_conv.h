// A convolution and what follows it as one kernel, on tapes that have PreparedWeights, on a CPU: a batch norm is a part
// of the filters, and shift, residual and relu are applied as the result is written. The reference is the composition
// of conv2d, batch_norm and the sum with the residual, from which it differs by roundings.
#pragma once

#include <optional>
#include <vector>

#include "libdtrain/autograd/prepared_weights.h"
#include "libdtrain/ops/batch_norm.h"
#include "libdtrain/ops/conv2d.h"

namespace dtrain {

// What follows the convolution: bias [k], which may be undefined, then the batch norm by running statistics.
struct InferredNorm {
  Tensor gamma, beta;
  BatchNormState state;
  float epsilon;
};
struct InferredEnd {
  Tensor bias{};
  std::optional<InferredNorm> norm{};
  Activation activation = Activation::none;
  const Var* residual = nullptr;  // of y's shape
  bool takes_residual = false;    // the caller gives it up: y may take its memory if no other tensor has it
};

// For y: the residual's memory where the end takes it, nobody else has it, and it is of this shape and type; else new.
Tensor result_memory(Context& context, const InferredEnd& end, const Shape& shape, DType dtype);

// What a form of the filters w with this end is made of: layers may share filters, and each have an end of its own.
PreparedWeights::Addresses addresses_of(const Tensor& w, const InferredEnd& end);

// The scale that the end multiplies the sums of each filter by, empty for 1, and the shift that it adds, empty for 0.
struct InferredAffine {
  std::vector<float> scale, shift;
};
InferredAffine affine_of(const InferredEnd& end, int64_t k);

// Whether the tape infers in this way, and this convolution with it.
bool is_inferred(const Tape& tape, const Var& x, const Conv2dOptions& options = {});
Var inferred_conv(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& options, const InferredEnd& end);
// y [n, out] of a fully connected layer with x [n, in], n > 0, w [out, in] and bias [out] or undefined.
Tensor inferred_linear(Tape& tape, const Var& x, const Var& w, const Tensor& bias);

}  // namespace dtrain
