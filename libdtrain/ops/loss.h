// Softmax cross-entropy, and the hits of a classification.
#pragma once

#include <tuple>

#include "libdtrain/autograd/tape.h"

namespace dtrain {

struct SoftmaxCrossEntropyOptions {
  float label_smoothing = 0;  // s: the target is (1 - s) one-hot + s / classes
  // Where images are mixed, [n] i32 and [n] f32: the row whose label is mixed into each row's, and the share in [0, 1]
  // that its own label keeps. In place of one-hot the target is share * own + (1 - share) * that of the partner, so
  // that the loss is such a mean of two cross-entropies. Both undefined: each row has its own label alone.
  Tensor partners{}, shares{};

  auto tensors() const { return std::tie(partners, shares); }
};

struct Classification {
  Var loss;         // [1]: the mean over the rows that count
  Tensor rows;      // [n] f32: each row's loss
  Tensor in_top_1;  // [n] f32: 1 where the label's logit is the largest (ties: the lower class first); of two labels,
                    // that of the larger share, and the row's own where they are equal
  Tensor in_top_5;  // [n] f32
  Tensor counts;    // [n] f32: 1 where the row counts, 0 where it is masked

  auto tensors() const { return std::tie(loss.value, rows, in_top_1, in_top_5, counts); }
};

// logits [n, classes] of any floating-point type, the type of their gradient; labels [n] i32. A row with a negative
// label is masked: it adds nothing to the loss, to its divisor or to the gradient. Labels must be below `classes`: the
// caller checks what it reads from files. One that is not throws on a CPU; on a GPU the loss and the gradient are NaN.
// A partner that is masked or no row of the batch leaves a row its own label alone. Throws Error where shapes or types
// are others, or label_smoothing is not in [0, 1).
Classification softmax_cross_entropy(Tape& tape, const Var& logits, const Tensor& labels,
                                     const SoftmaxCrossEntropyOptions& options = {});

// [n, classes] of any floating-point type -> probabilities [n, classes] in f32, for inference. Throws Error on another
// rank or no class.
Tensor softmax(Context& context, const Tensor& logits);

namespace cpu {
// `probabilities` [n, classes] and `divisor` [1], the number of rows that count, but at least 1, are kept for the
// gradient; all outputs are f32.
void softmax_cross_entropy(Context&, const Tensor& logits, const Tensor& labels, const SoftmaxCrossEntropyOptions&,
                           const Tensor& probabilities, const Tensor& divisor, const Classification& result);
// dlogits = dloss * (probabilities - target) / divisor
void softmax_cross_entropy_grad(Context&, const Tensor& dloss, const Tensor& probabilities, const Tensor& divisor,
                                const Tensor& labels, const SoftmaxCrossEntropyOptions&, const Tensor& dlogits,
                                bool add);
void softmax(Context&, const Tensor& logits, const Tensor& y);
}  // namespace cpu

namespace cuda {
decltype(cpu::softmax_cross_entropy) softmax_cross_entropy;
decltype(cpu::softmax_cross_entropy_grad) softmax_cross_entropy_grad;
decltype(cpu::softmax) softmax;
}  // namespace cuda

}  // namespace dtrain
