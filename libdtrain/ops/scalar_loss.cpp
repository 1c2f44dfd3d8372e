#include "dtrain/ops/scalar_loss.h"

#include <algorithm>

#include "dtrain/core/dispatch.h"
#include "dtrain/ops/gating.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/gating_kernels.h"
#include "libdtrain/ops/scalar_loss_kernels.h"

namespace dtrain {

Var mean_squared_error(Tape& tape, const Var& x, const Tensor& target) {
  DT_CHECK(x.shape() == target.shape() && target.dtype() == DType::f32 && target.count() > 0,
           "mean_squared_error: ", x.shape(), " and a target ", target.shape(), " of ", target.dtype(),
           ", expected equal shapes with elements, and f32");
  Context& context = tape.context();
  const Tensor loss = context.empty({1});
  DT_DISPATCH(context, mean_squared_error)(x.value, target, loss);
  return tape.record("mean_squared_error", loss, {&x}, [x, target](Tape& t, const Tensor& dloss) {
    if (const auto gradient = t.grad_target(x))
      DT_DISPATCH(t.context(), mean_squared_error_grad)(dloss, x.value, target, gradient->dx, gradient->add);
  });
}

Var weighted_sum(Tape& tape, const std::vector<Var>& losses, const std::vector<float>& weights) {
  DT_CHECK(!losses.empty() && losses.size() == weights.size(), "weighted_sum: ", losses.size(), " losses and ",
           weights.size(), " weights, expected one each");
  Context& context = tape.context();
  const Tensor sum = context.empty({1});
  std::vector<const Var*> inputs;
  std::vector<Var> slots;
  for (size_t i = 0; i < losses.size(); ++i) {
    const Tensor& loss = losses[i].value;
    DT_CHECK(loss.defined() && loss.count() == 1 && loss.dtype() == DType::f32, "weighted_sum: loss ", i, " is ",
             loss.shape(), " of ", loss.dtype(), ", expected one f32");
    DT_DISPATCH(context, scale)(loss, weights[i], sum, i > 0);
    inputs.push_back(&losses[i]);
    slots.push_back(losses[i].without_value());
  }
  return tape.record("weighted_sum", sum, inputs, [slots, weights](Tape& t, const Tensor& dsum) {
    for (size_t i = 0; i < slots.size(); ++i)
      if (const auto target = t.grad_target(slots[i]))
        DT_DISPATCH(t.context(), scale)(dsum, weights[i], target->dx, target->add);
  });
}

namespace cpu {
namespace {

// Reduction piece: fixed, so that sums do not depend on the number of threads.
constexpr int64_t kPiece = 4096;

double sum_of_squares(const float* x, const float* y, int64_t count) {
  return sum_in_lanes(count, [=](int64_t i) {
    const double difference = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    return difference * difference;
  });
}

}  // namespace

void mean_squared_error(Context& context, const Tensor& x, const Tensor& target, const Tensor& loss) {
  const float *const from = x.data<float>(), *const to = target.data<float>();
  const int64_t count = x.count(), pieces = (count + kPiece - 1) / kPiece;
  const Scratch<double> sums(context, pieces);
  parallel_ranges(
      pieces,
      [&](int64_t begin, int64_t end) {
        for (int64_t piece = begin; piece < end; ++piece) {
          const int64_t first = piece * kPiece;
          sums.data()[piece] = sum_of_squares(from + first, to + first, std::min(kPiece, count - first));
        }
      },
      kPiece);
  double sum = 0;
  for (int64_t piece = 0; piece < pieces; ++piece) sum += sums.data()[piece];
  *loss.data<float>() = static_cast<float>(sum / static_cast<double>(count));
}

void mean_squared_error_grad(Context&, const Tensor& dloss, const Tensor& x, const Tensor& target, const Tensor& dx,
                             bool add) {
  const float factor = *dloss.data<float>() * 2 / static_cast<float>(x.count());
  write(dx, add, [factor, x = x.data<float>(), y = target.data<float>()](int64_t i) { return factor * (x[i] - y[i]); });
}

}  // namespace cpu
}  // namespace dtrain
