// Softmax cross-entropy, and what it tells on the side.
#pragma once

#include "libdtrain/autograd/tape.h"

namespace dtrain {

struct SoftmaxCrossEntropyOptions {
  float label_smoothing = 0;  // s: the target is (1 - s) one-hot + s / classes
};

struct Classification {
  Var loss;         // [1]: the mean over the rows that count
  Tensor rows;      // [n] f32: each row's loss
  Tensor in_top_1;  // [n] f32: 1 where the label's logit is the largest (ties: the lower class first)
  Tensor in_top_5;  // [n] f32
};

// logits [n, classes] f32; labels [n] i32. A row with a negative label is masked: it adds nothing to the loss, to its
// divisor or to the gradient. Labels must be below `classes`: the caller checks what it reads from files.
Classification softmax_cross_entropy(Tape& tape, const Var& logits, const Tensor& labels,
                                     const SoftmaxCrossEntropyOptions& options = {});

// [n, classes] -> probabilities, for inference.
Tensor softmax(Context& context, const Tensor& logits);

namespace cpu {
// `probabilities` [n, classes] is kept for the gradient.
void softmax_cross_entropy(Context&, const Tensor& logits, const Tensor& labels, const SoftmaxCrossEntropyOptions&,
                           const Tensor& probabilities, const Tensor& rows, const Tensor& in_top_1,
                           const Tensor& in_top_5, const Tensor& loss);
// dlogits = dloss * (probabilities - target) / rows that count
void softmax_cross_entropy_grad(Context&, const Tensor& dloss, const Tensor& probabilities, const Tensor& labels,
                                const SoftmaxCrossEntropyOptions&, const Tensor& dlogits, bool add);
void softmax(Context&, const Tensor& logits, const Tensor& y);
}  // namespace cpu

}  // namespace dtrain
