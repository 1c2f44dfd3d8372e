// The softmax cross-entropy of a dense head with hard negative mining: of the boxes that are background, only those of
// the largest losses count (Liu et al. 2016, section 2.2).
#pragma once

#include "libdtrain/autograd/tape.h"

namespace dtrain {

struct MinedCrossEntropy {
  Var loss;          // [1]
  Tensor weights;    // [n, t] f32: 1 / p where the box counts, else 0
  Tensor positives;  // [n, t] f32: 1 / p where the box has an object, else 0
};

// logits [n, t, c] of any floating-point type, labels [n, t] i32 below c, 0 for background. In an image with p > 0
// boxes that are not background those count, and the negatives_per_positive * p background boxes with the largest
// losses, or all where there are fewer (ties: the first). In an image without any nothing counts. The loss is the mean
// over the images of (sum of the losses that count) / p, added up in double precision. Which boxes count is taken as
// given by the gradient. Throws Error where shapes or types do not fit, or negatives_per_positive is negative.
MinedCrossEntropy mined_cross_entropy(Tape& tape, const Var& logits, const Tensor& labels, int negatives_per_positive);

namespace cpu {
// losses [n, t] f32, none of them negative.
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
