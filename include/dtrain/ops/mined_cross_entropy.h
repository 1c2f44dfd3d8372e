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

}  // namespace dtrain
