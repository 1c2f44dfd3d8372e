#include "dtrain/ops/local_response_norm.h"

#include <vector>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/local_response_norm_kernels.h"
#include "libdtrain/ops/local_response_norm_math.h"

namespace dtrain {

Var local_response_norm(Tape& tape, const Var& x, const LocalResponseNormOptions& options) {
  DT_CHECK(x.shape().rank() >= 1, "local_response_norm: expected [..., c], found ", x.shape());
  DT_CHECK(options.radius >= 0 && options.bias > 0 && options.alpha >= 0, "local_response_norm: radius ",
           options.radius, ", bias ", options.bias, " and alpha ", options.alpha,
           ", expected a bias above 0 and no negative number");
  Context& context = tape.context();
  const Tensor y = context.empty(x.shape(), x.value.dtype()), sums = context.empty(x.shape());
  DT_DISPATCH(context, local_response_norm)(x.value, options, y, sums);
  tape.op_observer().note(options);
  return tape.record("local_response_norm", y, {&x}, [x, sums, options](Tape& t, const Tensor& dy) {
    if (const auto target = t.grad_target(x))
      DT_DISPATCH(t.context(), local_response_norm_grad)(dy, x.value, sums, options, target->dx, target->add);
  });
}

namespace cpu {
namespace {

// body(first element) for each pixel.
template <class Body>
void for_each_row(const Tensor& x, int64_t channels, Body&& body) {
  if (x.count() == 0) return;
  parallel_ranges(
      x.count() / channels,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) body(row * channels);
      },
      channels * 16);
}

}  // namespace

void local_response_norm(Context&, const Tensor& x, const LocalResponseNormOptions& options, const Tensor& y,
                         const Tensor& sums) {
  const int64_t channels = x.dim(x.shape().rank() - 1);
  for_each_row(x, channels, [&](int64_t first) {
    const float* const from = x.data<float>() + first;
    float *const to = y.data<float>() + first, *const s = sums.data<float>() + first;
    for (int64_t c = 0; c < channels; ++c) {
      const float squares = sum_around(c, channels, options.radius, [&](int64_t j) { return from[j] * from[j]; });
      s[c] = options.bias + options.alpha * squares;
      to[c] = from[c] * std::pow(s[c], -options.beta);
    }
  });
}

void local_response_norm_grad(Context&, const Tensor& dy, const Tensor& x, const Tensor& sums,
                              const LocalResponseNormOptions& options, const Tensor& dx, bool add) {
  const int64_t channels = x.dim(x.shape().rank() - 1);
  for_each_row(x, channels, [&](int64_t first) {
    const float *const grad = dy.data<float>() + first, *const from = x.data<float>() + first,
                       *const s = sums.data<float>() + first;
    float* const to = dx.data<float>() + first;
    std::vector<float> terms(static_cast<size_t>(channels));
    for (int64_t c = 0; c < channels; ++c)
      terms[static_cast<size_t>(c)] = response_term(grad[c], from[c], s[c], options.beta);
    for (int64_t c = 0; c < channels; ++c) {
      const float around =
          sum_around(c, channels, options.radius, [&](int64_t j) { return terms[static_cast<size_t>(j)]; });
      const float value = response_grad(grad[c], from[c], s[c], around, options);
      to[c] = add ? to[c] + value : value;
    }
  });
}

}  // namespace cpu
}  // namespace dtrain
