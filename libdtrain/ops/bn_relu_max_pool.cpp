#include "dtrain/ops/bn_relu_max_pool.h"

#include <algorithm>
#include <vector>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/bn_relu_max_pool_parts.h"
#include "libdtrain/ops/max_pool_parts.h"
#include "libdtrain/ops/pool_kernels.h"

namespace dtrain {

template <>
inline constexpr bool takes_bf16<cpu::bn_relu_max_pool> = true;

namespace {

void backward_on_cpu(Tape& tape, const Tensor& dy, const Var& x, const Var& gamma, const Var& beta,
                     const BatchNormSaved& saved, const Tensor& argmax, const PoolOptions& pool) {
  BatchNormGrads grads = parameter_targets(tape, gamma, beta);
  if (const auto target = tape.grad_target(x)) grads.dx = target->dx, grads.add_dx = target->add;
  cpu::bn_relu_max_pool_grad(tape.context(), dy, argmax, pool, saved, grads);
}

}  // namespace

Var bn_relu_max_pool(Tape& tape, const Var& x, const Var& gamma, const Var& beta, const BatchNormState& state,
                     const BatchNormOptions& bn, const PoolOptions& pool) {
  // Fused is the case that training a network of its own takes.
  if (!tape.training() || bn.frozen)
    return max_pool(tape, batch_norm(tape, x, gamma, beta, state, bn, Activation::relu), pool);
  check_batch_norm(x, gamma, beta, state);
  Context& context = tape.context();
  const BatchNormInputs in{x.value, gamma.value, beta.value, {}, Activation::relu};
  const BatchNormOutputs out{context.empty(pool_shape(x.shape(), pool), x.value.dtype()),
                             context.empty(gamma.shape()),
                             context.empty(gamma.shape()),
                             {}};
  const Tensor argmax = tape.wants_grad({&x, &gamma, &beta}) ? context.empty(out.y.shape(), DType::u8) : Tensor();
  DT_DISPATCH(context, bn_relu_max_pool)(in, state, bn, pool, out, argmax);
  const BatchNormSaved saved{
      x.value, {}, {}, out.mean, out.inv_std, gamma.value, beta.value, Activation::relu, false, synchronised_by(bn)};
  return tape.record("bn_relu_max_pool", out.y, {&x, &gamma, &beta},
                     [saved, argmax, pool, x = x.without_value(), g = gamma.without_value(), b = beta.without_value()](
                         Tape& t, const Tensor& dy) {
                       if (t.context().is_cpu()) return backward_on_cpu(t, dy, x, g, b, saved, argmax, pool);
                       const Tensor unpooled = t.context().empty(saved.x.shape(), dy.dtype());
                       DT_DISPATCH(t.context(), max_pool_grad)(dy, argmax, pool, unpooled, false);
                       batch_norm_backward(t, unpooled, x, g, b, {}, saved);
                     });
}

namespace cpu {
namespace {

// Bytes of the normalised image that a thread has in hand: they stay in the second-level cache.
constexpr int64_t kBand = int64_t{256} << 10;

// Pools images some rows at a time, from as much of the normalised image as those read.
template <class T>
class BandsPooled {
 public:
  BandsPooled(Context& context, const PoolGeometry& g, const BatchNormInputs& in, const BatchNormOutputs& out,
              const Tensor& argmax)
      : context_(context),
        g_(g),
        scale_(batch_norm_scales(context, in.gamma, out.inv_std)),
        band_(std::clamp<int64_t>((kBand / row_bytes() - g.rows.kernel) / g.rows.stride + 1, 1, g.rows.out)),
        buffers_(context, context.threads() * band_elements()),
        rows_{.x = in.x.data<T>(),
              .residual = nullptr,
              .y = nullptr,
              .mean = out.mean.data<float>(),
              .scale = scale_.data<float>(),
              .beta = in.beta.data<float>(),
              .rows = 0,
              .c = g.c,
              .stride = g.c,
              .act = Activation::relu},
        y_(out.y.data<T>()),
        winners_(argmax ? argmax.data<uint8_t>() : nullptr) {}

  // Rows [begin, end) of all pooled images.
  void pool(int64_t thread, int64_t begin, int64_t end) const {
    for (int64_t row = begin, next; row < end; row = next) {
      const int64_t image = row / g_.rows.out, p = row % g_.rows.out;
      next = std::min({row + band_, end, (image + 1) * g_.rows.out});
      pool_band(image, p, p + next - row, buffers_.data() + thread * band_elements());
    }
  }

 private:
  int64_t row_bytes() const { return g_.columns.in * g_.c * static_cast<int64_t>(sizeof(T)); }
  int64_t band_elements() const { return ((band_ - 1) * g_.rows.stride + g_.rows.kernel) * g_.columns.in * g_.c; }
  void pool_band(int64_t image, int64_t begin, int64_t end, T* buffer) const {
    const int64_t first = g_.rows.cells(begin).begin, last = g_.rows.cells(end - 1).end;
    NormalizedRows<T> rows = rows_;
    rows.x += g_.x_pixel(image, first, 0);
    rows.y = buffer;
    rows.rows = (last - first) * g_.columns.in;
    context_.kernels().batch_norm.of<T>().apply(rows);
    max_pool_rows(context_, g_, buffer, first, image, begin, end, y_, winners_);
  }

  const Context& context_;
  const PoolGeometry& g_;
  Tensor scale_;
  int64_t band_;  // rows of the pooled image
  Scratch<T> buffers_;
  NormalizedRows<T> rows_;  // y and the number of rows are those of a band
  T* y_;
  uint8_t* winners_;
};

}  // namespace

void bn_relu_max_pool(Context& context, const BatchNormInputs& in, const BatchNormState& state,
                      const BatchNormOptions& bn, const PoolOptions& pool, const BatchNormOutputs& out,
                      const Tensor& argmax) {
  batch_norm_statistics(context, in, state, bn, out.mean, out.inv_std);
  const PoolGeometry g(in.x, out.y, pool);
  with_elements(in.x.dtype(), [&]<class T>(T) {
    const BandsPooled<T> bands(context, g, in, out, argmax);
    parallel_chunks({context.threads(), g.n * g.rows.out, 4},
                    [&](int64_t thread, int64_t, int64_t begin, int64_t end) { bands.pool(thread, begin, end); });
  });
}

void bn_relu_max_pool_grad(Context& context, const Tensor& dy, const Tensor& argmax, const PoolOptions& pool,
                           const BatchNormSaved& saved, const BatchNormGrads& grads) {
  const PoolGeometry g(saved.x, dy, pool);
  const std::vector<PoolRange> covering = covering_columns(g);
  with_elements(dy.dtype(), [&]<class T>(T) {
    const auto unpool = [&](int64_t begin, int64_t end, T* to) {
      unpool_pixels(context, g, covering, dy.data<T>(), argmax.data<uint8_t>(), begin, end, to, false);
    };
    batch_norm_grad_of<T>(context, unpool, saved.x.count() / g.c, saved, grads);
  });
}

}  // namespace cpu
}  // namespace dtrain
