// Softmax cross-entropy of a dense head with hard negative mining: only background boxes of largest loss count (Liu et
// al. 2016, section 2.2).
#pragma once

#include "dtrain/autograd/tape.h"

namespace dtrain {

struct MinedCrossEntropy {
  Var loss;          // [1]
  Tensor weights;    // [n, t] f32: 1 / p if the box counts, else 0
  Tensor positives;  // [n, t] f32: 1 / p for positive boxes, else 0
};

// logits [n, t, c] of any floating-point type, labels [n, t] i32 below c, 0 for background. In an image with p > 0
// positive boxes, these and the negatives_per_positive * p background boxes of largest loss count (all if there are
// fewer; ties: the first). Images without positives do not count. The loss is the mean over images of (sum of counted
// losses) / p, accumulated in double. The gradient treats the selection as constant. Throws Error for mismatched shapes
// or types, or negative negatives_per_positive.
MinedCrossEntropy mined_cross_entropy(Tape& tape, const Var& logits, const Tensor& labels, int negatives_per_positive);

namespace cpu {
// losses [n, t] f32, non-negative.
void mine_negatives(Context&, const Tensor& losses, const Tensor& labels, int negatives_per_positive,
                    const Tensor& weights, const Tensor& positives, const Tensor& loss);
// dlogits = dloss / n * weight * (probability - target); probabilities [n * t, c] f32
void mined_cross_entropy_grad(Context&, const Tensor& dloss, const Tensor& probabilities, const Tensor& labels,
                              const Tensor& weights, const Tensor& dlogits, bool add);
}  // namespace cpu

namespace cuda {
decltype(cpu::mine_negatives) mine_negatives;
decltype(cpu::mined_cross_entropy_grad) mined_cross_entropy_grad;
}  // namespace cuda

}  // namespace dtrain
