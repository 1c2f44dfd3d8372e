#include "libdtrain/ops/group_norm.h"

#include <algorithm>

#include "libdtrain/core/dispatch.h"
#include "libdtrain/cpu/parallel.h"
#include "libdtrain/ops/batch_norm_math.h"

namespace dtrain {
namespace {

// x, viewed as [n, pixels, c], normalised in groups of channels.
Var normalize_groups(const char* op, Tape& tape, const Var& x, const Var& gamma, const Var& beta, const Shape& images,
                     int64_t groups, float epsilon) {
  const Shape channels{images[2]};
  DT_CHECK(images.count() > 0 && groups >= 1 && images[2] % groups == 0, op, ": ", x.shape(), " in ", groups,
           " groups, expected elements, and channels that divide into groups");
  DT_CHECK(gamma.shape() == channels && beta.shape() == channels, op, ": gamma ", gamma.shape(), " and beta ",
           beta.shape(), ", expected ", channels);
  DT_CHECK(gamma.value.dtype() == DType::f32 && beta.value.dtype() == DType::f32, op, ": gamma of ",
           gamma.value.dtype(), " and beta of ", beta.value.dtype(), ", expected f32");
  Context& context = tape.context();
  const Tensor y = context.empty(x.shape(), x.value.dtype());
  const GroupNormSaved saved{x.value.view(images), gamma.value, context.empty({images[0], groups}),
                             context.empty({images[0], groups})};
  DT_DISPATCH(context, group_norm)(saved, beta.value, epsilon, y);
  return tape.record(op, y, {&x, &gamma, &beta},
                     [saved, x = x.without_value(), gamma = gamma.without_value(), beta = beta.without_value()](
                         Tape& t, const Tensor& dy) {
                       if (const auto target = t.grad_target(x))
                         DT_DISPATCH(t.context(), group_norm_grad)(dy, saved, target->dx, target->add);
                       GroupNormParameterGrads grads;
                       if (const auto target = t.grad_target(gamma))
                         grads.dgamma = target->dx, grads.add_dgamma = target->add;
                       if (const auto target = t.grad_target(beta))
                         grads.dbeta = target->dx, grads.add_dbeta = target->add;
                       if (grads.dgamma || grads.dbeta)
                         DT_DISPATCH(t.context(), group_norm_parameter_grad)(dy, saved, grads);
                     });
}

}  // namespace

Var group_norm(Tape& tape, const Var& x, const Var& gamma, const Var& beta, int groups, float epsilon) {
  const int rank = x.shape().rank();
  DT_CHECK(rank == 4 || rank == 2, "group_norm: expected [n, h, w, c] or [n, c], found ", x.shape());
  const int64_t pixels = rank == 4 ? x.value.dim(1) * x.value.dim(2) : 1;
  return normalize_groups("group_norm", tape, x, gamma, beta, {x.value.dim(0), pixels, x.value.dim(rank - 1)}, groups,
                          epsilon);
}

Var layer_norm(Tape& tape, const Var& x, const Var& gamma, const Var& beta, float epsilon) {
  DT_CHECK(x.shape().rank() >= 1 && x.value.count() > 0, "layer_norm: expected [..., c] with elements, found ",
           x.shape());
  const int64_t c = x.value.dim(x.shape().rank() - 1);
  return normalize_groups("layer_norm", tape, x, gamma, beta, {x.value.count() / c, 1, c}, 1, epsilon);
}

namespace cpu {
namespace {

// Rows of so many pixels are summed in float before they are added up in double.
constexpr int64_t kBlock = 64;

struct Geometry {
  int64_t n, pixels, c, groups, width;  // `width`: channels of a group

  explicit Geometry(const GroupNormSaved& saved)
      : n(saved.x.dim(0)), pixels(saved.x.dim(1)), c(saved.x.dim(2)), groups(saved.mean.dim(1)), width(c / groups) {}
  double size() const { return static_cast<double>(pixels * width); }  // elements of a group
};

// Some neighbouring groups of one image, whose rows one thread goes over together: channels [begin, end).
struct Share {
  const Geometry& g;
  int64_t image, first_group, last_group;
  float* scratch;  // rows of c floats

  int64_t begin() const { return first_group * g.width; }
  int64_t end() const { return last_group * g.width; }
  int64_t row(int64_t pixel) const { return (image * g.pixels + pixel) * g.c; }
  float* per_channel(int i) const { return scratch + i * g.c; }

  // Fills per_channel(i) with value(group).
  template <class Value>
  void spread(int i, Value&& value) const {
    for (int64_t group = first_group; group < last_group; ++group)
      std::fill_n(per_channel(i) + group * g.width, g.width, static_cast<float>(value(image * g.groups + group)));
  }
  // sums[image, group] = the sum over the group of term(element, channel), by way of per_channel(i).
  template <class Term>
  void sum(int i, double* sums, Term&& term) const {
    float* const block = per_channel(i);
    std::fill(sums + image * g.groups + first_group, sums + image * g.groups + last_group, 0.0);
    for (int64_t first = 0; first < g.pixels; first += kBlock) {
      std::fill(block + begin(), block + end(), 0.0f);
      for (int64_t pixel = first; pixel < std::min(g.pixels, first + kBlock); ++pixel) {
        const int64_t at = row(pixel), stop = end();
#pragma omp simd
        for (int64_t channel = begin(); channel < stop; ++channel) block[channel] += term(at + channel, channel);
      }
      for (int64_t group = first_group; group < last_group; ++group)
        sums[image * g.groups + group] +=
            sum_in_lanes(g.width, [own = block + group * g.width](int64_t channel) { return own[channel]; });
    }
  }
  // body(element, channel) for each
  template <class Body>
  void for_each(Body&& body) const {
    for (int64_t pixel = 0; pixel < g.pixels; ++pixel) {
      const int64_t at = row(pixel), stop = end();
#pragma omp simd
      for (int64_t channel = begin(); channel < stop; ++channel) body(at + channel, channel);
    }
  }
};

// body(share) until all groups of all images are done, with `rows` rows of scratch. What is computed of a group does
// not depend on how they are shared among threads.
template <class Body>
void for_each_share(const Context& context, const Geometry& g, int64_t rows, Body&& body) {
  const Scratch<float> scratch(context, context.threads() * rows * g.c);
  parallel_ranges(
      g.n * g.groups,
      [&](int64_t thread, int64_t begin, int64_t end) {
        float* const own = scratch.data() + thread * rows * g.c;
        while (begin < end) {
          const int64_t image = begin / g.groups, first = image * g.groups, stop = std::min(end, first + g.groups);
          body(Share{g, image, begin - first, stop - first, own});
          begin = stop;
        }
      },
      3 * g.pixels * g.width);
}

}  // namespace

void group_norm(Context& context, const GroupNormSaved& saved, const Tensor& beta, float epsilon, const Tensor& y) {
  const Geometry g(saved);
  const float *const x = saved.x.data<float>(), *const gamma = saved.gamma.data<float>(), *b = beta.data<float>();
  float *const mean = saved.mean.data<float>(), *const inv_std = saved.inv_std.data<float>(), *to = y.data<float>();
  const Scratch<double> scratch(context, g.n * g.groups);
  double* const sums = scratch.data();
  for_each_share(context, g, 3, [=](const Share& share) {
    share.sum(0, sums, [=](int64_t i, int64_t) { return x[i]; });
    const float* const m = share.per_channel(1);
    share.spread(1, [&](int64_t group) { return mean[group] = static_cast<float>(sums[group] / g.size()); });
    share.sum(0, sums, [=](int64_t i, int64_t c) { return (x[i] - m[c]) * (x[i] - m[c]); });
    float* const scale = share.per_channel(2);
    share.spread(2, [&](int64_t group) { return inv_std[group] = inverse_deviation(sums[group] / g.size(), epsilon); });
    for (int64_t c = share.begin(); c < share.end(); ++c) scale[c] *= gamma[c];
    share.for_each([=](int64_t i, int64_t c) { to[i] = normalize(x[i], m[c], scale[c], b[c]); });
  });
}

void group_norm_grad(Context& context, const Tensor& dy, const GroupNormSaved& saved, const Tensor& dx, bool add) {
  const Geometry g(saved);
  const float *const x = saved.x.data<float>(), *const gamma = saved.gamma.data<float>(), *const d = dy.data<float>();
  const float *const mean = saved.mean.data<float>(), *const inv_std = saved.inv_std.data<float>();
  float* const to = dx.data<float>();
  const Scratch<double> scratch(context, 2 * g.n * g.groups);
  double *const sums = scratch.data(), *const products = sums + g.n * g.groups;
  for_each_share(context, g, 5, [=](const Share& share) {
    const float *const m = share.per_channel(1), *const scale = share.per_channel(2);
    const float *const mean_dz = share.per_channel(3), *const slope = share.per_channel(4);
    share.spread(1, [&](int64_t group) { return mean[group]; });
    share.spread(2, [&](int64_t group) { return inv_std[group]; });
    share.sum(0, sums, [=](int64_t i, int64_t c) { return gamma[c] * d[i]; });
    share.sum(0, products, [=](int64_t i, int64_t c) { return gamma[c] * d[i] * (x[i] - m[c]); });
    share.spread(3, [&](int64_t group) { return sums[group] / g.size(); });
    share.spread(4,
                 [&](int64_t group) { return double{inv_std[group]} * inv_std[group] * products[group] / g.size(); });
    share.for_each([=](int64_t i, int64_t c) {
      const float value = normalize_grad(gamma[c] * d[i], x[i], m[c], scale[c], mean_dz[c], slope[c]);
      to[i] = add ? to[i] + value : value;
    });
  });
}

void group_norm_parameter_grad(Context& context, const Tensor& dy, const GroupNormSaved& saved,
                               const GroupNormParameterGrads& grads) {
  const Geometry g(saved);
  const float *const x = saved.x.data<float>(), *const d = dy.data<float>();
  const float *const mean = saved.mean.data<float>(), *const inv_std = saved.inv_std.data<float>();
  // For each part of the rows: sums of dy * (x - m) * inv_std, then of dy.
  const Scratch<double> sums(context, context.threads() * 2 * g.c);
  const Scratch<float> blocks(context, context.threads() * 2 * g.c);
  parallel_parts(context, g.n * g.pixels, [&](int part, int64_t begin, int64_t end) {
    double* const own = sums.data() + part * 2 * g.c;
    float* const block = blocks.data() + part * 2 * g.c;
    std::fill_n(own, 2 * g.c, 0.0);
    for (int64_t first = begin; first < end; first += kBlock) {
      std::fill_n(block, 2 * g.c, 0.0f);
      for (int64_t row = first; row < std::min(end, first + kBlock); ++row)
        for (int64_t group = 0; group < g.groups; ++group) {
          const int64_t which = row / g.pixels * g.groups + group, at = group * g.width;
          const float m = mean[which], s = inv_std[which];
          const float *const from = x + row * g.c + at, *const upstream = d + row * g.c + at;
          float *const product = block + at, *const sum = product + g.c;
#pragma omp simd
          for (int64_t j = 0; j < g.width; ++j) {
            product[j] += upstream[j] * ((from[j] - m) * s);
            sum[j] += upstream[j];
          }
        }
      for (int64_t i = 0; i < 2 * g.c; ++i) own[i] += block[i];
    }
  });
  const auto finish = [&](const Tensor& gradient, bool add, int64_t from) {
    for (int64_t c = 0; gradient && c < g.c; ++c) {
      double sum = 0;
      for (int part = 0; part < context.threads(); ++part) sum += sums.data()[part * 2 * g.c + from + c];
      float& to = gradient.data<float>()[c];
      to = (add ? to : 0.0f) + static_cast<float>(sum);
    }
  };
  finish(grads.dgamma, grads.add_dgamma, 0);
  finish(grads.dbeta, grads.add_dbeta, g.c);
}

}  // namespace cpu
}  // namespace dtrain
