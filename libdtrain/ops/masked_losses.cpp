#include "dtrain/ops/masked_losses.h"

#include <algorithm>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/masked_losses_kernels.h"
#include "libdtrain/ops/masked_losses_math.h"
#include "libdtrain/ops/pointwise_kernels.h"

namespace dtrain {
namespace {

void require_divisor(const char* what, const LossDivisor& divisor) {
  DT_CHECK(divisor.constant > 0, what, ": a divisor with constant ", divisor.constant, ", expected a positive one");
  DT_CHECK(!divisor.count || (divisor.count.count() == 1 && divisor.count.dtype() == DType::f32), what,
           ": a divisor with count ", divisor.count.shape(), " of ", divisor.count.dtype(), ", expected one f32");
}

void require_elements(const char* what, const Var& x, const Tensor& targets) {
  DT_CHECK(
      x.shape().rank() >= 1 && x.shape().count() > 0 && x.shape() == targets.shape() && targets.dtype() == DType::f32,
      what, ": ", x.shape(), " and targets ", targets.shape(), " of ", targets.dtype(),
      ", expected equal shapes with elements, and f32");
}

// Whether there is one weight per row (index of the first dimension).
bool weighs_rows(const Var& x, const Tensor& weights) { return weights.shape() == Shape{x.shape()[0]}; }

}  // namespace

Var sigmoid_cross_entropy(Tape& tape, const Var& x, const Tensor& targets, const Tensor& weights,
                          const LossDivisor& divisor) {
  require_elements("sigmoid_cross_entropy", x, targets);
  require_divisor("sigmoid_cross_entropy", divisor);
  DT_CHECK((weights.shape() == x.shape() || weighs_rows(x, weights)) && weights.dtype() == DType::f32,
           "sigmoid_cross_entropy: weights ", weights.shape(), " of ", weights.dtype(), ", expected ", x.shape(),
           " or [", x.shape()[0], "] of f32");
  Context& context = tape.context();
  const Tensor loss = context.empty({1});
  DT_DISPATCH(context, sigmoid_cross_entropy)(x.value, targets, weights, divisor, loss);
  return tape.record("sigmoid_cross_entropy", loss, {&x}, [x, targets, weights, divisor](Tape& t, const Tensor& dloss) {
    const auto grad = DT_DISPATCH(t.context(), sigmoid_cross_entropy_grad);
    if (const auto to = t.grad_target(x)) grad(dloss, x.value, targets, weights, divisor, to->dx, to->add);
  });
}

Var smooth_l1(Tape& tape, const Var& x, const Tensor& targets, const Tensor& weights, float beta,
              const LossDivisor& divisor) {
  require_elements("smooth_l1", x, targets);
  require_divisor("smooth_l1", divisor);
  DT_CHECK(weighs_rows(x, weights) && weights.dtype() == DType::f32, "smooth_l1: weights ", weights.shape(), " of ",
           weights.dtype(), ", expected [", x.shape()[0], "] of f32");
  DT_CHECK(beta >= 0, "smooth_l1: beta ", beta, ", expected 0 or more");
  Context& context = tape.context();
  const Tensor loss = context.empty({1});
  DT_DISPATCH(context, smooth_l1)(x.value, targets, weights, beta, divisor, loss);
  return tape.record("smooth_l1", loss, {&x}, [x, targets, weights, beta, divisor](Tape& t, const Tensor& dloss) {
    const auto grad = DT_DISPATCH(t.context(), smooth_l1_grad);
    if (const auto to = t.grad_target(x)) grad(dloss, x.value, targets, weights, beta, divisor, to->dx, to->add);
  });
}

Var select_class(Tape& tape, const Var& x, const Tensor& classes) {
  DT_CHECK(x.shape().rank() == 4, "select_class: ", x.shape(), ", expected [n, a, k, b]");
  const int64_t n = x.shape()[0];
  DT_CHECK(classes.shape() == Shape{n} && classes.dtype() == DType::i32, "select_class: classes ", classes.shape(),
           " of ", classes.dtype(), ", expected [", n, "] of i32");
  Context& context = tape.context();
  const Tensor y = context.empty({n, x.shape()[1], x.shape()[3]}, x.value.dtype());
  DT_DISPATCH(context, select_class)(x.value, classes, y);
  return tape.record("select_class", y, {&x}, [x = x.without_value(), classes](Tape& t, const Tensor& dy) {
    if (const auto target = t.grad_target(x))
      DT_DISPATCH(t.context(), select_class_grad)(dy, classes, target->dx, target->add);
  });
}

namespace cpu {
namespace {

// Reduction piece: fixed, so that sums do not depend on the number of threads.
constexpr int64_t kPiece = 4096;
constexpr int64_t kTermWeight = 4;  // average cost of a term, masked ones included, in loads, adds and stores

// add(i, weight) for the unmasked elements of [begin, end).
template <class Add>
void for_each_weighted(const Tensor& weights, int64_t per_weight, int64_t begin, int64_t end, Add&& add) {
  const float* weight = weights.data<float>() + begin / per_weight;
  for (int64_t next = (begin / per_weight + 1) * per_weight; begin < end; next += per_weight, ++weight) {
    const int64_t stop = std::min(next, end);
    if (*weight != 0)
      for (int64_t i = begin; i < stop; ++i) add(i, *weight);
    begin = stop;
  }
}

template <class Term>
void masked_sum(Context& context, const Tensor& x, const Tensor& targets, const Tensor& weights,
                const LossDivisor& divisor, const Term& term, const Tensor& loss) {
  const int64_t count = x.count(), pieces = (count + kPiece - 1) / kPiece, per_weight = count / weights.count();
  const float *const from = x.data<float>(), *const target = targets.data<float>();
  const Scratch<double> sums(context, pieces);
  parallel_ranges(
      pieces,
      [&](int64_t begin, int64_t end) {
        for (int64_t piece = begin; piece < end; ++piece) {
          double sum = 0;
          for_each_weighted(weights, per_weight, piece * kPiece, std::min((piece + 1) * kPiece, count),
                            [&](int64_t i, float w) { sum += double{w} * double{term(from[i], target[i]).value}; });
          sums.data()[piece] = sum;
        }
      },
      kPiece * kTermWeight);
  double sum = 0;
  for (int64_t piece = 0; piece < pieces; ++piece) sum += sums.data()[piece];
  const float* const number = divisor.count ? divisor.count.data<float>() : nullptr;
  *loss.data<float>() = static_cast<float>(sum / double{loss_divisor(divisor.constant, number)});
}

template <class Term>
void masked_grad(const Tensor& dloss, const Tensor& x, const Tensor& targets, const Tensor& weights,
                 const LossDivisor& divisor, const Term& term, const Tensor& dx, bool add) {
  const int64_t per_weight = x.count() / weights.count();
  const float *const from = x.data<float>(), *const target = targets.data<float>();
  const float* const number = divisor.count ? divisor.count.data<float>() : nullptr;
  const float factor = *dloss.data<float>() / loss_divisor(divisor.constant, number);
  float* const to = dx.data<float>();
  parallel_ranges(
      x.count(),
      [&](int64_t begin, int64_t end) {
        if (!add) std::fill(to + begin, to + end, 0.0f);
        for_each_weighted(weights, per_weight, begin, end,
                          [&](int64_t i, float w) { to[i] += factor * w * term(from[i], target[i]).slope; });
      },
      kTermWeight);
}

// body(x, y): offsets of b consecutive elements of a row's class in x and in y.
template <class Body>
void for_each_selected(const Shape& x, const Tensor& classes, Body&& body) {
  const int64_t a = x[1], k = x[2], b = x[3];
  for (int64_t row = 0; row < x[0]; ++row) {
    const int64_t chosen = classes.data<int32_t>()[row];
    DT_CHECK(chosen < k, "select_class: class ", chosen, " in row ", row, ", of ", k, " classes");
    if (chosen < 0) continue;
    for (int64_t i = 0; i < a; ++i) body(((row * a + i) * k + chosen) * b, (row * a + i) * b);
  }
}

}  // namespace

void sigmoid_cross_entropy(Context& context, const Tensor& x, const Tensor& targets, const Tensor& weights,
                           const LossDivisor& divisor, const Tensor& loss) {
  masked_sum(context, x, targets, weights, divisor, SigmoidCrossEntropyTerm(), loss);
}

void sigmoid_cross_entropy_grad(Context&, const Tensor& dloss, const Tensor& x, const Tensor& targets,
                                const Tensor& weights, const LossDivisor& divisor, const Tensor& dx, bool add) {
  masked_grad(dloss, x, targets, weights, divisor, SigmoidCrossEntropyTerm(), dx, add);
}

void smooth_l1(Context& context, const Tensor& x, const Tensor& targets, const Tensor& weights, float beta,
               const LossDivisor& divisor, const Tensor& loss) {
  masked_sum(context, x, targets, weights, divisor, SmoothL1Term{beta}, loss);
}

void smooth_l1_grad(Context&, const Tensor& dloss, const Tensor& x, const Tensor& targets, const Tensor& weights,
                    float beta, const LossDivisor& divisor, const Tensor& dx, bool add) {
  masked_grad(dloss, x, targets, weights, divisor, SmoothL1Term{beta}, dx, add);
}

void select_class(Context& context, const Tensor& x, const Tensor& classes, const Tensor& y) {
  context.fill_zero(y);
  const float* const from = x.data<float>();
  float* const to = y.data<float>();
  for_each_selected(x.shape(), classes,
                    [=, b = x.dim(3)](int64_t there, int64_t here) { std::copy_n(from + there, b, to + here); });
}

void select_class_grad(Context&, const Tensor& dy, const Tensor& classes, const Tensor& dx, bool add) {
  if (!add) write(dx, false, [](int64_t) { return 0.0f; });
  const float* const from = dy.data<float>();
  float* const to = dx.data<float>();
  for_each_selected(dx.shape(), classes, [=, b = dx.dim(3)](int64_t there, int64_t here) {
    for (int64_t i = 0; i < b; ++i) to[there + i] += from[here + i];
  });
}

}  // namespace cpu
}  // namespace dtrain
