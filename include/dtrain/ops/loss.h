// Softmax cross-entropy with top-1 and top-5 accuracy.
#pragma once

#include <tuple>

#include "dtrain/autograd/tape.h"

namespace dtrain {

struct SoftmaxCrossEntropyOptions {
  float label_smoothing = 0;  // s: the target is (1 - s) one-hot + s / classes
  // Mixup: [n] i32 row whose label is mixed into each row's, and [n] f32 weight in [0, 1] of the row's own label. The
  // one-hot target becomes share * own + (1 - share) * partner, so the loss is the weighted mean of two
  // cross-entropies. Both undefined: no mixing.
  Tensor partners{}, shares{};

  auto tensors() const { return std::tie(partners, shares); }
};

struct Classification {
  Var loss;         // [1]: mean over unmasked rows
  Tensor rows;      // [n] f32: loss per row
  Tensor in_top_1;  // [n] f32: 1 if the label's logit is the largest (ties: lower class first); of two labels the one
                    // with the larger share counts, the row's own on a tie
  Tensor in_top_5;  // [n] f32
  Tensor counts;    // [n] f32: 1 for counted rows, 0 for masked ones

  auto tensors() const { return std::tie(loss.value, rows, in_top_1, in_top_5, counts); }
};

// logits [n, classes] of any floating-point type, also of their gradient; labels [n] i32. Rows with negative labels are
// masked: excluded from the loss, its divisor and the gradient. Labels >= `classes` throw on a CPU; on a GPU loss and
// gradient become NaN. A partner that is masked or out of range leaves a row its own label. Throws Error for mismatched
// shapes or types, or label_smoothing outside [0, 1).
Classification softmax_cross_entropy(Tape& tape, const Var& logits, const Tensor& labels,
                                     const SoftmaxCrossEntropyOptions& options = {});

// [n, classes] of any floating-point type -> probabilities [n, classes] f32, for inference. Throws Error for another
// rank or no classes.
Tensor softmax(Context& context, const Tensor& logits);

}  // namespace dtrain
