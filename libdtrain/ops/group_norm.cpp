#include "dtrain/ops/group_norm.h"

#include <algorithm>
#include <vector>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/batch_norm_math.h"
#include "libdtrain/ops/group_norm_kernels.h"

namespace dtrain {

template <>
inline constexpr bool takes_bf16<cpu::group_norm> = true;
template <>
inline constexpr bool takes_bf16<cpu::group_norm_grad> = true;
template <>
inline constexpr bool takes_bf16<cpu::group_norm_parameter_grad> = true;

namespace {

// Normalises x, viewed as [n, pixels, c], in groups of channels.
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

// Pixels per f32 partial sum; partial sums are added in double.
constexpr int64_t kBlock = 64;

struct Geometry {
  int64_t n, pixels, c, groups, width;  // `width`: channels per group

  explicit Geometry(const GroupNormSaved& saved)
      : n(saved.x.dim(0)), pixels(saved.x.dim(1)), c(saved.x.dim(2)), groups(saved.mean.dim(1)), width(c / groups) {}
  double size() const { return static_cast<double>(pixels * width); }  // elements per group
};

// Some neighbouring groups of one image, whose rows one thread goes over together.
struct WorkItem {
  const Geometry& g;
  int64_t image, first_group, groups;
  float* scratch;  // rows of c floats

  int64_t first_channel() const { return first_group * g.width; }
  int64_t channels() const { return groups * g.width; }
  int64_t row(int64_t pixel) const { return (image * g.pixels + pixel) * g.c + first_channel(); }
  int64_t index(int64_t group) const { return image * g.groups + first_group + group; }  // in [n, groups]
  float* per_channel(int i) const { return scratch + i * g.c; }

  // Fills per_channel(i) with value(group), groups counted from the share's first.
  template <class Value>
  void spread(int i, Value&& value) const {
    for (int64_t group = 0; group < groups; ++group)
      std::fill_n(per_channel(i) + group * g.width, g.width, static_cast<float>(value(group)));
  }
  // Sum over a group's channels of factor(channel) * per_channel(i).
  template <class Factor>
  double sum_of(int i, int64_t group, Factor&& factor) const {
    const float* const own = per_channel(i);
    const int64_t first = group * g.width;
    return sum_in_lanes(g.width, [&](int64_t j) { return factor(first + j) * static_cast<double>(own[first + j]); });
  }
  // body(first pixel, count) per block.
  template <class Body>
  void for_each_block(Body&& body) const {
    for (int64_t first = 0; first < g.pixels; first += kBlock) body(first, std::min(kBlock, g.pixels - first));
  }
};

// body(share) over all groups of all images, with `rows` rows of scratch. Results of a group do not depend on the
// partition among threads.
template <class Body>
void for_each_share(const Context& context, const Geometry& g, int64_t rows, Body&& body) {
  const Scratch<float> scratch(context, context.threads() * rows * g.c);
  parallel_ranges(
      g.n * g.groups,
      [&](int64_t thread, int64_t begin, int64_t end) {
        float* const own = scratch.data() + thread * rows * g.c;
        while (begin < end) {
          const int64_t image = begin / g.groups, first = image * g.groups, stop = std::min(end, first + g.groups);
          body(WorkItem{g, image, begin - first, stop - begin, own});
          begin = stop;
        }
      },
      3 * g.pixels * g.width);
}

// Sums over each group's pixels and channels, from per-channel sums that `sum_block(first, count)` leaves in
// per_channel(i) and per_channel(i + 1).
struct TwoSums {
  double first = 0, second = 0;
};
template <class Factor, class SumBlock>
std::vector<TwoSums> sum_groups(const WorkItem& share, int i, Factor&& factor, SumBlock&& sum_block) {
  std::vector<TwoSums> sums(static_cast<size_t>(share.groups));
  share.for_each_block([&](int64_t first, int64_t count) {
    sum_block(first, count);
    for (int64_t group = 0; group < share.groups; ++group) {
      sums[static_cast<size_t>(group)].first += share.sum_of(i, group, factor);
      sums[static_cast<size_t>(group)].second += share.sum_of(i + 1, group, factor);
    }
  });
  return sums;
}

// Moments of each group in one pass, shifted by a pivot, the group's mean over the first block, which avoids
// cancellation for large means.
template <class T>
std::vector<Moments> moments_of_groups(const BatchNormLoops<T>& loops, const WorkItem& share, const T* x) {
  constexpr int kPivot = 0, kSum = 1, kSquare = 2;
  const Geometry& g = share.g;
  float* const pivot = share.per_channel(kPivot);
  const auto one = [](int64_t) { return 1.0; };
  const auto sum_block = [&](int64_t first, int64_t count) {
    loops.moments(x + share.row(first), count, share.channels(), g.c, pivot, share.per_channel(kSum),
                  share.per_channel(kSquare));
  };
  const int64_t rows = std::min(kBlock, g.pixels);
  share.spread(kPivot, [](int64_t) { return 0; });
  sum_block(0, rows);
  share.spread(kPivot,
               [&](int64_t group) { return share.sum_of(kSum, group, one) / static_cast<double>(rows * g.width); });
  const std::vector<TwoSums> sums = sum_groups(share, kSum, one, sum_block);
  std::vector<Moments> moments;
  for (int64_t group = 0; group < share.groups; ++group) {
    const TwoSums& own = sums[static_cast<size_t>(group)];
    moments.push_back(moments_of(own.first, own.second, g.size()));
    moments.back().mean += pivot[group * g.width];
  }
  return moments;
}

}  // namespace

void group_norm(Context& context, const GroupNormSaved& saved, const Tensor& beta, float epsilon, const Tensor& y) {
  const Geometry g(saved);
  float *const mean = saved.mean.data<float>(), *const inv_std = saved.inv_std.data<float>();
  with_elements(y.dtype(), [&]<class T>(T) {
    const BatchNormLoops<T>& loops = context.kernels().batch_norm.of<T>();
    for_each_share(context, g, 3, [&](const WorkItem& share) {
      const std::vector<Moments> moments = moments_of_groups(loops, share, saved.x.data<T>());
      share.spread(0, [&](int64_t group) {
        return mean[share.index(group)] = static_cast<float>(moments[static_cast<size_t>(group)].mean);
      });
      share.spread(1, [&](int64_t group) {
        const double variance = moments[static_cast<size_t>(group)].deviation / g.size();
        return inv_std[share.index(group)] = inverse_deviation(variance, epsilon);
      });
      float* const scale = share.per_channel(1);
      const float* const gamma = saved.gamma.data<float>() + share.first_channel();
      for (int64_t c = 0; c < share.channels(); ++c) scale[c] *= gamma[c];
      loops.apply({saved.x.data<T>() + share.row(0), nullptr, y.data<T>() + share.row(0), share.per_channel(0), scale,
                   beta.data<float>() + share.first_channel(), g.pixels, share.channels(), g.c});
    });
  });
}

void group_norm_grad(Context& context, const Tensor& dy, const GroupNormSaved& saved, const Tensor& dx, bool add) {
  constexpr int kMean = 0, kScale = 1, kSum = 2, kProduct = 3, kOffset = 2, kSlope = 3;
  const Geometry g(saved);
  const float *const mean = saved.mean.data<float>(), *const inv_std = saved.inv_std.data<float>();
  with_elements(dx.dtype(), [&]<class T>(T) {
    const BatchNormLoops<T>& loops = context.kernels().batch_norm.of<T>();
    for_each_share(context, g, 4, [&](const WorkItem& share) {
      const float* const gamma = saved.gamma.data<float>() + share.first_channel();
      float* const scale = share.per_channel(kScale);
      share.spread(kMean, [&](int64_t group) { return mean[share.index(group)]; });
      share.spread(kScale, [&](int64_t group) { return inv_std[share.index(group)]; });
      for (int64_t c = 0; c < share.channels(); ++c) scale[c] *= gamma[c];
      const auto rows = [&](int64_t first, int64_t count) {
        return GradientRows<T>{dy.data<T>() + share.row(first),
                               saved.x.data<T>() + share.row(first),
                               nullptr,
                               share.per_channel(kMean),
                               scale,
                               nullptr,
                               count,
                               share.channels(),
                               g.c};
      };
      const std::vector<TwoSums> sums = sum_groups(
          share, kSum, [&](int64_t c) { return static_cast<double>(gamma[c]); },
          [&](int64_t first, int64_t count) {
            loops.sums(rows(first, count), share.per_channel(kSum), share.per_channel(kProduct), nullptr);
          });
      share.spread(kOffset, [&](int64_t group) {
        return inv_std[share.index(group)] * sums[static_cast<size_t>(group)].first / g.size();
      });
      share.spread(kSlope, [&](int64_t group) {
        const double inverse = inv_std[share.index(group)];
        return inverse * inverse * inverse * sums[static_cast<size_t>(group)].second / g.size();
      });
      loops.dx(rows(0, g.pixels), share.per_channel(kOffset), share.per_channel(kSlope),
               add ? StoreMode::add : StoreMode::store, dx.data<T>() + share.row(0));
    });
  });
}

namespace {

// own[c] += sums of dy * (x - m) * inv_std over rows [begin, end) of all images; own[g.c + c] += sums of dy. `scratch`
// holds 4 c floats.
template <class T>
void sum_parameter_grads(const BatchNormLoops<T>& loops, const Tensor& dy, const GroupNormSaved& saved, int64_t begin,
                         int64_t end, double* own, float* scratch) {
  const Geometry g(saved);
  float *const mean = scratch, *const inv_std = mean + g.c, *const sum = inv_std + g.c, *const product = sum + g.c;
  for (int64_t last; begin < end; begin = last) {
    const int64_t image = begin / g.pixels;
    last = std::min(std::min(end, (image + 1) * g.pixels), begin + kBlock);
    for (int64_t c = 0; c < g.c; ++c) {
      mean[c] = saved.mean.data<float>()[image * g.groups + c / g.width];
      inv_std[c] = saved.inv_std.data<float>()[image * g.groups + c / g.width];
    }
    loops.sums({dy.data<T>() + begin * g.c, saved.x.data<T>() + begin * g.c, nullptr, mean, nullptr, nullptr,
                last - begin, g.c, g.c},
               sum, product, nullptr);
    for (int64_t c = 0; c < g.c; ++c) {
      own[c] += product[c] * inv_std[c];
      own[g.c + c] += sum[c];
    }
  }
}

}  // namespace

void group_norm_parameter_grad(Context& context, const Tensor& dy, const GroupNormSaved& saved,
                               const GroupNormParameterGrads& grads) {
  const Geometry g(saved);
  const Scratch<double> sums(context, context.threads() * 2 * g.c);  // per partition of the rows
  const Scratch<float> scratch(context, context.threads() * 4 * g.c);
  with_elements(dy.dtype(), [&]<class T>(T) {
    parallel_parts(context, g.n * g.pixels, [&](int part, int64_t begin, int64_t end) {
      double* const own = sums.data() + part * 2 * g.c;
      std::fill_n(own, 2 * g.c, 0.0);
      sum_parameter_grads(context.kernels().batch_norm.of<T>(), dy, saved, begin, end, own,
                          scratch.data() + part * 4 * g.c);
    });
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
