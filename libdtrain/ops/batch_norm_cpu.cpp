// CPU arm of batch_norm.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "libdtrain/cpu/parallel.h"
#include "libdtrain/cpu/simd.h"
#include "libdtrain/distributed/communicator.h"
#include "libdtrain/ops/batch_norm.h"
#include "libdtrain/ops/batch_norm_math.h"

namespace dtrain::cpu {
namespace {

// A block of rows is summed in float, which is exact enough over so few, before it is merged in double.
constexpr int64_t kBlockRows = 64;

// Per channel: the sums of x - shift and of its square.
void shifted_sums(const float* x, int64_t rows, int64_t c, const float* shift, float* sum, float* square) {
  std::fill_n(sum, c, 0.0f);
  std::fill_n(square, c, 0.0f);
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x + row * c;
#pragma omp simd
    for (int64_t i = 0; i < c; ++i) {
      const float d = from[i] - shift[i];
      sum[i] += d;
      square[i] += d * d;
    }
  }
}

// Moments of all channels of x in one pass over memory; `buffer` holds 3 c floats. Each block is shifted by the mean of
// those before it: what cancels within a block is then small against the deviation of all.
void range_moments(const float* x, int64_t rows, int64_t c, double* mean, double* deviation, float* buffer) {
  float *shift = buffer, *sum = buffer + c, *square = buffer + 2 * c;
  std::fill_n(mean, c, 0.0);
  std::fill_n(deviation, c, 0.0);
  std::fill_n(shift, c, 0.0f);
  const int64_t first = std::min(kBlockRows, rows);
  shifted_sums(x, first, c, shift, sum, square);
  for (int64_t i = 0; i < c && first; ++i) shift[i] = sum[i] / static_cast<float>(first);
  for (int64_t row = 0; row < rows; row += kBlockRows) {
    const int64_t size = std::min(kBlockRows, rows - row);
    shifted_sums(x + row * c, size, c, shift, sum, square);
    const double before = static_cast<double>(row), count = static_cast<double>(size);
    for (int64_t i = 0; i < c; ++i) {
      const double s = sum[i];
      const Moments all =
          merge({before, mean[i], deviation[i]}, {count, shift[i] + s / count, square[i] - s * s / count});
      mean[i] = all.mean;
      deviation[i] = all.deviation;
      shift[i] = static_cast<float>(all.mean);
    }
  }
}

template <bool kRelu, bool kResidual>
void apply_rows(const float* x, const float* mean, const float* scale, const float* beta, const float* residual,
                int64_t rows, int64_t c, float* y) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t at = row * c;
#pragma omp simd
    for (int64_t i = 0; i < c; ++i) {
      float value = normalize(x[at + i], mean[i], scale[i], beta[i]);
      if constexpr (kResidual) value += residual[at + i];
      if constexpr (kRelu) value = value < 0 ? 0 : value;  // lets a NaN through
      y[at + i] = value;
    }
  }
}

// scale[c] = gamma * inv_std
Scratch<float> scales(Context& context, const Tensor& gamma, const Tensor& inv_std) {
  const int64_t c = gamma.count();
  Scratch<float> scale(context, c);
  const float *g = gamma.data<float>(), *s = inv_std.data<float>();
  for (int64_t i = 0; i < c; ++i) scale.data()[i] = g[i] * s[i];
  return scale;
}

// What decides whether relu let an element through: nothing (no relu), the sign of y, or that of y made again from x.
enum class Mask { none, y, x };

// The operands of the gradient, [rows, c], and the constants of the channels.
struct GradOperands {
  const float *dy, *x, *y;
  const float *mean, *scale, *beta;

  // The gradient at the activation's input of the elements at `at`, in the channels at i.
  template <Mask kMask, class V>
  V gated(int64_t at, int64_t i) const {
    const V all = load<V>(dy + at);
    if constexpr (kMask == Mask::y) return load<V>(y + at) > 0 ? all : V{};
    if constexpr (kMask == Mask::x)
      return normalize(load<V>(x + at), load<V>(mean + i), load<V>(scale + i), load<V>(beta + i)) > 0 ? all : V{};
    return all;
  }
};

// Calls body(V(), rows, row, i) until rows [begin, end) by c channels are done: V is eight channels or one, `rows` the
// constant four or one. Short rows go four at a time, so that the constants of a channel are loaded once for four; long
// ones, a multiple of 4 KiB apart, would push each other out of the cache.
template <class Body>
void in_tiles(int64_t begin, int64_t end, int64_t c, Body&& body) {
  constexpr int64_t kShortRow = 64;
  auto across = [&](auto rows, int64_t row) {
    int64_t i = 0;
    for (; i + 8 <= c; i += 8) body(Float8(), rows, row, i);
    for (; i < c; ++i) body(float(), rows, row, i);
  };
  for (; c <= kShortRow && begin + 4 <= end; begin += 4) across(std::integral_constant<int, 4>(), begin);
  for (; begin < end; ++begin) across(std::integral_constant<int, 1>(), begin);
}

// sum(dz) into sums[0, c) and sum(dz * (x - mean)) into sums[c, 2 c), over rows [begin, end), and dz into `kept` where
// that is wanted; `buffer` holds 2 c floats.
template <Mask kMask, bool kKeep>
void grad_sums(const GradOperands& o, int64_t begin, int64_t end, int64_t c, double* sums, float* buffer, float* kept) {
  float *sum = buffer, *product = buffer + c;
  std::fill_n(sums, 2 * c, 0.0);
  for (int64_t block = begin; block < end; block += kBlockRows) {
    std::fill_n(buffer, 2 * c, 0.0f);
    in_tiles(block, std::min(block + kBlockRows, end), c, [&]<class V>(V, auto rows, int64_t row, int64_t i) {
      const V mean = load<V>(o.mean + i);
      V s = load<V>(sum + i), p = load<V>(product + i);
      for (int r = 0; r < rows; ++r) {
        const int64_t at = (row + r) * c + i;
        const V dz = o.gated<kMask, V>(at, i);
        s += dz;
        p += dz * (load<V>(o.x + at) - mean);
        if constexpr (kKeep) store(kept + at, dz);
      }
      store(sum + i, s);
      store(product + i, p);
    });
    for (int64_t i = 0; i < 2 * c; ++i) sums[i] += buffer[i];
  }
}

// dz of the elements [begin, end), where nothing is summed up.
template <Mask kMask>
void gate_elements(const GradOperands& o, int64_t begin, int64_t end, int64_t c, float* dz) {
  for (int64_t i = begin; i < end; ++i) dz[i] = o.gated<kMask, float>(i, i % c);
}

// dx of rows [begin, end), stored or added. `terms`: mean_dz[c] and slope[c], see normalize_grad; not read where the
// statistics are constant.
template <Mask kMask, bool kConstant, bool kAdd>
void dx_rows(const GradOperands& o, const float* terms, int64_t begin, int64_t end, int64_t c, float* dx) {
  const float *mean_dz = terms, *slope = terms + c;
  in_tiles(begin, end, c, [&]<class V>(V, auto rows, int64_t row, int64_t i) {
    for (int r = 0; r < rows; ++r) {
      const int64_t at = (row + r) * c + i;
      const V dz = o.gated<kMask, V>(at, i), scale = load<V>(o.scale + i);
      V fresh;
      if constexpr (kConstant)
        fresh = dz * scale;
      else
        fresh =
            normalize_grad(dz, load<V>(o.x + at), load<V>(o.mean + i), scale, load<V>(mean_dz + i), load<V>(slope + i));
      store(dx + at, kAdd ? load<V>(dx + at) + fresh : fresh);
    }
  });
}

// The loops above for one mask.
struct GradLoops {
  decltype(&grad_sums<Mask::none, false>) sums[2];  // [1]: dz is kept
  decltype(&gate_elements<Mask::none>) gate;
  decltype(&dx_rows<Mask::none, false, false>) dx[2][2];  // [1][.]: constant statistics; [.][1]: added
};
template <Mask kMask>
constexpr GradLoops kGradLoops{{grad_sums<kMask, false>, grad_sums<kMask, true>},
                               gate_elements<kMask>,
                               {{dx_rows<kMask, false, false>, dx_rows<kMask, false, true>},
                                {dx_rows<kMask, true, false>, dx_rows<kMask, true, true>}}};

const GradLoops& loops_of(Mask mask) {
  switch (mask) {
    case Mask::y:
      return kGradLoops<Mask::y>;
    case Mask::x:
      return kGradLoops<Mask::x>;
    case Mask::none:
      break;
  }
  return kGradLoops<Mask::none>;
}

// The sums of all parts, in their order, into the first.
void merge_sums(double* sums, int64_t count, int parts) {
  for (int part = 1; part < parts; ++part)
    for (int64_t i = 0; i < count; ++i) sums[i] += sums[part * count + i];
}

void store_or_add(const Tensor& to, int64_t i, double value, bool add) {
  float& element = to.data<float>()[i];
  element = (add ? element : 0.0f) + static_cast<float>(value);
}

// Adds up over the ranks, as f32, what is in sums[0, size) and `count`, which is returned.
double sum_over_ranks(Context& context, Communicator& ranks, double* sums, int64_t size, double count,
                      const char* what) {
  const Tensor message = context.empty({size + 1});
  float* const all = message.data<float>();
  for (int64_t i = 0; i < size; ++i) all[i] = static_cast<float>(sums[i]);
  all[size] = static_cast<float>(count);
  dtrain::sum_over_ranks(ranks, message, what);
  for (int64_t i = 0; i < size; ++i) sums[i] = all[i];
  return all[size];
}

// Makes of moments[0, 2 c), as of moments_of_all, those of the images of all ranks. `count`: rows of this rank; returns
// those of all.
double share_moments(Context& context, Communicator& ranks, double count, int64_t c, double* moments) {
  const Tensor pivots = context.empty({c});
  float* const pivot = pivots.data<float>();
  double *const mean = moments, *const deviation = moments + c;
  for (int64_t i = 0; i < c; ++i) pivot[i] = static_cast<float>(mean[i] / ranks.size());
  dtrain::sum_over_ranks(ranks, pivots, "batch_norm, means");
  for (int64_t i = 0; i < c; ++i) {
    const PivotSums own = sums_about(pivot[i], {count, mean[i], deviation[i]});
    mean[i] = own.sum;
    deviation[i] = own.square;
  }
  const double total = sum_over_ranks(context, ranks, moments, 2 * c, count, "batch_norm, statistics");
  for (int64_t i = 0; i < c; ++i) {
    const Moments all = moments_about(pivot[i], {mean[i], deviation[i]}, total);
    mean[i] = all.mean;
    deviation[i] = all.deviation;
  }
  return total;
}

// The means of all channels of x, [c], followed by the sums of squared deviations, [c].
Scratch<double> moments_of_all(Context& context, const Tensor& x, int64_t c) {
  const int64_t rows = x.count() / c;
  const int parts = context.threads();
  Scratch<double> moments(context, parts * 2 * c);
  const Scratch<float> buffers(context, parts * 3 * c);
  const float* from = x.data<float>();
  parallel_parts(context, rows, [&](int part, int64_t begin, int64_t end) {
    double* own = moments.data() + part * 2 * c;
    range_moments(from + begin * c, end - begin, c, own, own + c, buffers.data() + part * 3 * c);
  });
  for (int64_t i = 0; i < c; ++i) {
    Moments all;
    for (int part = 0; part < parts; ++part) {
      const double* own = moments.data() + part * 2 * c;
      const int64_t size = rows * (part + 1) / parts - rows * part / parts;
      all = merge(all, {static_cast<double>(size), own[i], own[c + i]});
    }
    moments.data()[i] = all.mean;
    moments.data()[c + i] = all.deviation;
  }
  return moments;
}

// mean[c] and inv_std[c] of x, or of the images of all ranks; the running statistics are updated.
void take_statistics(Context& context, const Tensor& x, const BatchNormState& state, const BatchNormOptions& options,
                     const Tensor& mean, const Tensor& inv_std) {
  const int64_t c = mean.count();
  const Scratch<double> moments = moments_of_all(context, x, c);
  const double *const means = moments.data(), *const deviations = means + c;
  double count = static_cast<double>(x.count() / c);
  if (Communicator* const ranks = synchronised_by(options))
    count = share_moments(context, *ranks, count, c, moments.data());
  float *running_mean = state.running_mean.data<float>(), *running_var = state.running_var.data<float>();
  const double running_count = options.unbiased_running_variance ? std::max(count - 1, 1.0) : count;
  for (int64_t i = 0; i < c; ++i) {
    const auto batch_mean = static_cast<float>(means[i]);
    mean.data<float>()[i] = batch_mean;
    inv_std.data<float>()[i] = inverse_deviation(deviations[i] / count, options.epsilon);
    running_mean[i] = blend(running_mean[i], batch_mean, options.momentum);
    running_var[i] = blend(running_var[i], static_cast<float>(deviations[i] / running_count), options.momentum);
  }
}

void apply(Context& context, const BatchNormInputs& in, const BatchNormOutputs& out) {
  const int64_t c = out.mean.count();
  const Scratch<float> scale = scales(context, in.gamma, out.inv_std);
  const float* add = in.residual ? in.residual.data<float>() : nullptr;
  const bool relu = in.activation == Activation::relu;
  const auto rows = relu ? (add ? apply_rows<true, true> : apply_rows<true, false>)
                         : (add ? apply_rows<false, true> : apply_rows<false, false>);
  const float* from = in.x.data<float>();
  float* to = out.y.data<float>();
  parallel_parts(context, in.x.count() / c, [&](int, int64_t begin, int64_t end) {
    rows(from + begin * c, out.mean.data<float>(), scale.data(), in.beta.data<float>(), add ? add + begin * c : nullptr,
         end - begin, c, to + begin * c);
  });
}

// dgamma and dbeta from the sums of grad_sums, and the terms of dx, see normalize_grad: mean_dz[c] and slope[c]. Over
// several ranks dx takes the sums of all of them.
void finish_sums(Context& context, const BatchNormSaved& saved, const BatchNormGrads& grads, int64_t rows, double* sums,
                 float* terms) {
  const int64_t c = saved.mean.count();
  const float* const inv_std = saved.inv_std.data<float>();
  for (int64_t i = 0; i < c; ++i) {
    if (grads.dbeta) store_or_add(grads.dbeta, i, sums[i], grads.add_dbeta);
    if (grads.dgamma) store_or_add(grads.dgamma, i, sums[c + i] * inv_std[i], grads.add_dgamma);
  }
  double count = static_cast<double>(rows);
  if (saved.communicator && grads.dx)
    count = sum_over_ranks(context, *saved.communicator, sums, 2 * c, count, "batch_norm, gradient");
  for (int64_t i = 0; i < c; ++i) {
    terms[i] = static_cast<float>(sums[i] / count);
    terms[c + i] = static_cast<float>(sums[c + i] * inv_std[i] * inv_std[i] / count);
  }
}

}  // namespace

void batch_norm_train(Context& context, const BatchNormInputs& in, const BatchNormState& state,
                      const BatchNormOptions& options, const BatchNormOutputs& out) {
  take_statistics(context, in.x, state, options, out.mean, out.inv_std);
  apply(context, in, out);
}

void batch_norm_infer(Context& context, const BatchNormInputs& in, const BatchNormState& state,
                      const BatchNormOptions& options, const BatchNormOutputs& out) {
  const float* var = state.running_var.data<float>();
  for (int64_t i = 0; i < out.inv_std.count(); ++i)
    out.inv_std.data<float>()[i] = inverse_deviation(var[i], options.epsilon);
  apply(context, in, out);
}

void batch_norm_grad(Context& context, const Tensor& dy, const BatchNormSaved& saved, const BatchNormGrads& grads) {
  const int64_t c = saved.mean.count(), rows = dy.count() / c;
  const Scratch<float> scale = scales(context, saved.gamma, saved.inv_std), terms(context, 2 * c);
  auto pointer = [](const Tensor& tensor) { return tensor ? tensor.data<float>() : nullptr; };
  GradOperands operands{dy.data<float>(),         pointer(saved.x), pointer(saved.y),
                        saved.mean.data<float>(), scale.data(),     saved.beta.data<float>()};
  Mask mask = saved.activation == Activation::none ? Mask::none : saved.y ? Mask::y : Mask::x;
  float* const kept = pointer(grads.dresidual);
  const bool constant = saved.constant_statistics;

  if (!constant || grads.dgamma || grads.dbeta) {
    const auto add_up = loops_of(mask).sums[kept != nullptr];
    const Scratch<double> sums(context, context.threads() * 2 * c);
    const Scratch<float> buffers(context, context.threads() * 2 * c);
    parallel_parts(context, rows, [&](int part, int64_t begin, int64_t end) {
      add_up(operands, begin, end, c, sums.data() + part * 2 * c, buffers.data() + part * 2 * c, kept);
    });
    merge_sums(sums.data(), 2 * c, context.threads());
    finish_sums(context, saved, grads, rows, sums.data(), terms.data());
  } else if (kept) {
    const auto gate = loops_of(mask).gate;
    parallel_ranges(rows * c, [&](int64_t begin, int64_t end) { gate(operands, begin, end, c, kept); });
  }
  if (!grads.dx) return;
  if (kept) {  // what the first pass has kept, the second need not work out again
    operands.dy = kept;
    mask = Mask::none;
  }
  const auto write = loops_of(mask).dx[constant][grads.add_dx];
  float* const dx = grads.dx.data<float>();
  parallel_parts(context, rows,
                 [&](int, int64_t begin, int64_t end) { write(operands, terms.data(), begin, end, c, dx); });
}

}  // namespace dtrain::cpu
