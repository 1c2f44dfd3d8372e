#include "dtrain/ops/mined_cross_entropy.h"

#include <algorithm>
#include <functional>

#include "dtrain/core/dispatch.h"
#include "dtrain/ops/loss.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/loss_kernels.h"
#include "libdtrain/ops/loss_math.h"
#include "libdtrain/ops/mined_cross_entropy_kernels.h"
#include "libdtrain/ops/top_k_math.h"

namespace dtrain {

MinedCrossEntropy mined_cross_entropy(Tape& tape, const Var& logits, const Tensor& labels, int negatives_per_positive) {
  const Shape& shape = logits.shape();
  DT_CHECK(shape.rank() == 3 && shape.count() > 0, "mined_cross_entropy: expected logits [n, t, c], found ", shape);
  const int64_t n = shape[0], t = shape[1], c = shape[2];
  DT_CHECK(labels.shape() == (Shape{n, t}) && labels.dtype() == DType::i32, "mined_cross_entropy: expected labels [", n,
           ", ", t, "] of i32, found ", labels.shape(), " of ", labels.dtype());
  DT_CHECK(negatives_per_positive >= 0, "mined_cross_entropy: ", negatives_per_positive, " negatives per positive");
  Context& context = tape.context();
  Classification rows;
  rows.loss.value = context.empty({1});
  for (Tensor* const column : {&rows.rows, &rows.in_top_1, &rows.in_top_5, &rows.counts})
    *column = context.empty({n * t});
  const Tensor probabilities = context.empty({n * t, c}), divisor = context.empty({1});
  DT_DISPATCH(context, softmax_cross_entropy)
  (logits.value.view({n * t, c}), labels.view({n * t}), SoftmaxCrossEntropyOptions(), probabilities, divisor, rows);
  MinedCrossEntropy mined;
  mined.loss.value = context.empty({1});
  mined.weights = context.empty({n, t});
  mined.positives = context.empty({n, t});
  DT_DISPATCH(context, mine_negatives)
  (rows.rows.view({n, t}), labels, negatives_per_positive, mined.weights, mined.positives, mined.loss.value);
  mined.loss = tape.record(
      "mined_cross_entropy", mined.loss.value, {&logits},
      [x = logits.without_value(), probabilities, labels, weights = mined.weights](Tape& on, const Tensor& dloss) {
        const auto grad = DT_DISPATCH(on.context(), mined_cross_entropy_grad);
        if (const auto to = on.grad_target(x)) grad(dloss, probabilities, labels, weights, to->dx, to->add);
      });
  return mined;
}

namespace cpu {
namespace {

// Writes the weights of one image; returns its contribution to the loss.
double mine_image(const float* losses, const int32_t* labels, int64_t t, int64_t per_positive, uint64_t* keys,
                  float* weights, float* positives) {
  int64_t found = 0, negatives = 0;
  for (int64_t i = 0; i < t; ++i) {
    weights[i] = positives[i] = 0;
    if (labels[i] > 0)
      ++found;
    else
      keys[negatives++] = ScoreKey::of(losses[i], i);
  }
  if (found == 0) return 0;
  const float weight = 1.0f / static_cast<float>(found);
  const int64_t mined = std::min(per_positive * found, negatives);
  if (mined < negatives) std::nth_element(keys, keys + mined, keys + negatives, std::greater<>());
  for (int64_t i = 0; i < mined; ++i) weights[ScoreKey::index(keys[i])] = weight;
  double sum = 0;
  for (int64_t i = 0; i < t; ++i) {
    if (labels[i] > 0) weights[i] = positives[i] = weight;
    if (weights[i] != 0) sum += double{losses[i]};
  }
  return sum / static_cast<double>(found);
}

}  // namespace

void mine_negatives(Context& context, const Tensor& losses, const Tensor& labels, int negatives_per_positive,
                    const Tensor& weights, const Tensor& positives, const Tensor& loss) {
  const int64_t n = losses.dim(0), t = losses.dim(1);
  const Scratch<uint64_t> keys(context, n * t);
  const Scratch<double> shares(context, n);
  parallel_ranges(
      n,
      [&](int64_t begin, int64_t end) {
        for (int64_t image = begin; image < end; ++image) {
          const int64_t first = image * t;
          shares.data()[image] =
              mine_image(losses.data<float>() + first, labels.data<int32_t>() + first, t, negatives_per_positive,
                         keys.data() + first, weights.data<float>() + first, positives.data<float>() + first);
        }
      },
      16 * t);
  double sum = 0;
  for (int64_t image = 0; image < n; ++image) sum += shares.data()[image];
  *loss.data<float>() = static_cast<float>(sum / static_cast<double>(n));
}

void mined_cross_entropy_grad(Context&, const Tensor& dloss, const Tensor& probabilities, const Tensor& labels,
                              const Tensor& weights, const Tensor& dlogits, bool add) {
  const int64_t c = probabilities.dim(1);
  const float factor = *dloss.data<float>() / static_cast<float>(labels.dim(0));
  const float *const p = probabilities.data<float>(), *const weight = weights.data<float>();
  write(dlogits, add, [=, label = labels.data<int32_t>()](int64_t i) {
    const int64_t row = i / c;
    if (weight[row] == 0) return 0.0f;
    return cross_entropy_grad(factor * weight[row], p[i], i % c == label[row] ? 1.0f : 0.0f);
  });
}

}  // namespace cpu
}  // namespace dtrain
