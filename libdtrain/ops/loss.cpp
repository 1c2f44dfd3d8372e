#include "dtrain/ops/loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/loss_kernels.h"
#include "libdtrain/ops/loss_math.h"

namespace dtrain {

Classification softmax_cross_entropy(Tape& tape, const Var& logits, const Tensor& labels,
                                     const SoftmaxCrossEntropyOptions& options) {
  DT_CHECK(logits.shape().rank() == 2 && logits.value.dim(1) > 0,
           "softmax_cross_entropy: expected logits [n, classes], found ", logits.shape());
  const int64_t n = logits.value.dim(0);
  DT_CHECK(labels.shape() == Shape{n} && labels.dtype() == DType::i32, "softmax_cross_entropy: expected labels [", n,
           "] of type i32, found ", labels.shape(), " of type ", labels.dtype());
  DT_CHECK(options.label_smoothing >= 0 && options.label_smoothing < 1, "softmax_cross_entropy: label smoothing ",
           options.label_smoothing, " is not in [0, 1)");
  DT_CHECK(static_cast<bool>(options.partners) == static_cast<bool>(options.shares),
           "softmax_cross_entropy: partners and shares go together");
  if (options.partners)
    DT_CHECK(options.partners.shape() == Shape{n} && options.partners.dtype() == DType::i32 &&
                 options.shares.shape() == Shape{n} && options.shares.dtype() == DType::f32,
             "softmax_cross_entropy: expected partners [", n, "] of type i32 and shares of type f32, found ",
             options.partners.shape(), " of type ", options.partners.dtype(), " and ", options.shares.shape(),
             " of type ", options.shares.dtype());
  Context& context = tape.context();
  const auto column = [&] { return context.empty({n}); };
  Classification result{{context.empty({1})}, column(), column(), column(), column()};
  const Tensor probabilities = context.empty(logits.shape()), divisor = context.empty({1});
  DT_DISPATCH(context, softmax_cross_entropy)(logits.value, labels, options, probabilities, divisor, result);
  result.loss =
      tape.record("softmax_cross_entropy", result.loss.value, {&logits},
                  [x = logits.without_value(), probabilities, divisor, labels, options](Tape& t, const Tensor& dloss) {
                    const auto grad = DT_DISPATCH(t.context(), softmax_cross_entropy_grad);
                    if (const auto target = t.grad_target(x))
                      grad(dloss, probabilities, divisor, labels, options, target->dx, target->add);
                  });
  return result;
}

Tensor softmax(Context& context, const Tensor& logits) {
  DT_CHECK(logits.shape().rank() == 2 && logits.dim(1) > 0, "softmax: expected [n, classes], found ", logits.shape());
  const Tensor y = context.empty(logits.shape());
  DT_DISPATCH(context, softmax)(logits, y);
  return y;
}

namespace cpu {
namespace {

constexpr int64_t kExpWeight = 16;  // cost of exp in loads, adds and stores

// body(row) for each row of `x`
template <class Body>
void for_each_row(const Tensor& x, Body&& body) {
  parallel_ranges(
      x.dim(0),
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) body(row);
      },
      x.dim(1) * kExpWeight);
}

// y = softmax(z); returns log(sum(exp(z))).
double softmax_row(const float* z, int64_t classes, float* y) {
  const float largest = *std::max_element(z, z + classes);
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += y[c] = std::exp(z[c] - largest);
  const auto scale = static_cast<float>(1 / sum);
  for (int64_t c = 0; c < classes; ++c) y[c] *= scale;
  return largest + std::log(sum);
}

double cross_entropy_row(const float* z, int64_t classes, const LabelPair& labels, double log_sum, float smoothing) {
  double sum = 0;
  if (smoothing != 0)
    for (int64_t c = 0; c < classes; ++c) sum += z[c];
  const double logit = mixed_logit<double>(labels, z[labels.main], labels.other < 0 ? 0.0f : z[labels.other]);
  return cross_entropy<double>(log_sum, logit, sum / static_cast<double>(classes), smoothing);
}

LabelPair labels_of_row(const Tensor& labels, const SoftmaxCrossEntropyOptions& options, int64_t row) {
  const bool mixed = static_cast<bool>(options.partners);
  return labels_of(labels.data<int32_t>(), mixed ? options.partners.data<int32_t>() : nullptr,
                   mixed ? options.shares.data<float>() : nullptr, labels.count(), row);
}

int64_t rank_of(const float* z, int64_t classes, int64_t label) {
  int64_t rank = 0;
  for (int64_t c = 0; c < classes; ++c) rank += c != label && outranks(z[c], c, z[label], label);
  return rank;
}

void require_labels(const Tensor& labels, int64_t classes) {
  const int32_t* label = labels.data<int32_t>();
  for (int64_t row = 0; row < labels.count(); ++row)
    DT_CHECK(label[row] < classes, "softmax_cross_entropy: label ", label[row], " in row ", row, ": the logits have ",
             classes, " classes");
}

}  // namespace

void softmax_cross_entropy(Context&, const Tensor& logits, const Tensor& labels,
                           const SoftmaxCrossEntropyOptions& options, const Tensor& probabilities,
                           const Tensor& divisor, const Classification& result) {
  const int64_t classes = logits.dim(1);
  require_labels(labels, classes);
  float* const rows = result.rows.data<float>();
  float *const in_top_1 = result.in_top_1.data<float>(), *const in_top_5 = result.in_top_5.data<float>();
  float* const counts = result.counts.data<float>();
  for_each_row(logits, [&](int64_t row) {
    const float* z = logits.data<float>() + row * classes;
    const double log_sum = softmax_row(z, classes, probabilities.data<float>() + row * classes);
    const LabelPair target = labels_of_row(labels, options, row);
    const int64_t label = target.main;
    rows[row] = in_top_1[row] = in_top_5[row] = 0;
    counts[row] = label < 0 ? 0.0f : 1.0f;
    if (label < 0) return;
    const int64_t rank = rank_of(z, classes, label);
    rows[row] = static_cast<float>(cross_entropy_row(z, classes, target, log_sum, options.label_smoothing));
    in_top_1[row] = hit(rank, 1, z[label]);
    in_top_5[row] = hit(rank, 5, z[label]);
  });
  double sum = 0;
  for (float row : result.rows.span<float>()) sum += row;
  const auto all = labels.span<int32_t>();
  const auto masked = std::count_if(all.begin(), all.end(), [](int32_t label) { return label < 0; });
  const auto count = std::max<int64_t>(labels.count() - masked, 1);
  *divisor.data<float>() = static_cast<float>(count);
  *result.loss.value.data<float>() = static_cast<float>(sum / static_cast<double>(count));
}

void softmax_cross_entropy_grad(Context&, const Tensor& dloss, const Tensor& probabilities, const Tensor& divisor,
                                const Tensor& labels, const SoftmaxCrossEntropyOptions& options, const Tensor& dlogits,
                                bool add) {
  const int64_t classes = probabilities.dim(1);
  const float factor = *dloss.data<float>() / *divisor.data<float>();
  for_each_row(probabilities, [&](int64_t row) {
    const float* p = probabilities.data<float>() + row * classes;
    float* dz = dlogits.data<float>() + row * classes;
    const LabelPair pair = labels_of_row(labels, options, row);
    for (int64_t c = 0; c < classes; ++c) {
      const float target = smoothed_target(share_of(pair, c), classes, options.label_smoothing);
      const float d = pair.main < 0 ? 0.0f : cross_entropy_grad(factor, p[c], target);
      dz[c] = add ? dz[c] + d : d;
    }
  });
}

void softmax(Context&, const Tensor& logits, const Tensor& y) {
  const int64_t classes = logits.dim(1);
  for_each_row(logits, [&](int64_t row) {
    softmax_row(logits.data<float>() + row * classes, classes, y.data<float>() + row * classes);
  });
}

}  // namespace cpu
}  // namespace dtrain
