// CPU arm of batch_norm.
#include <algorithm>
#include <cmath>

#include "dtrain/distributed/communicator.h"
#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/batch_norm_math.h"
#include "libdtrain/ops/batch_norm_parts.h"

namespace dtrain::cpu {
namespace {

// A block of rows is summed in float, which is exact enough over so few, before it is merged in double.
constexpr int64_t kBlockRows = 64;
// Bytes of a result from which nothing of it stays in a cache of the usual size until it is read again.
constexpr int64_t kPastCaches = int64_t{16} << 20;

// Whether [rows, c] elements of T are stored past the caches.
template <class T>
bool is_past_caches(int64_t rows, int64_t c) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  return rows * c * kSize >= kPastCaches && c * kSize % 64 == 0;
}

// Moments of all channels of x in one pass over memory; `buffer` holds 3 c floats. Each block is shifted by the mean of
// those before it: what cancels within a block is then small against the deviation of all.
template <class T>
void range_moments(const BatchNormLoops<T>& loops, const T* x, int64_t rows, int64_t c, double* mean, double* deviation,
                   float* buffer) {
  float *shift = buffer, *sum = buffer + c, *square = buffer + 2 * c;
  std::fill_n(mean, c, 0.0);
  std::fill_n(deviation, c, 0.0);
  std::fill_n(shift, c, 0.0f);
  const int64_t first = std::min(kBlockRows, rows);
  loops.moments(x, first, c, c, shift, sum, square);
  for (int64_t i = 0; i < c && first; ++i) shift[i] = sum[i] / static_cast<float>(first);
  for (int64_t row = 0; row < rows; row += kBlockRows) {
    const int64_t size = std::min(kBlockRows, rows - row);
    loops.moments(x + row * c, size, c, c, shift, sum, square);
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

}  // namespace

Tensor batch_norm_scales(Context& context, const Tensor& gamma, const Tensor& inv_std) {
  const int64_t c = gamma.count();
  const Tensor scale = context.empty({c});
  const float *g = gamma.data<float>(), *s = inv_std.data<float>();
  for (int64_t i = 0; i < c; ++i) scale.data<float>()[i] = g[i] * s[i];
  return scale;
}

namespace {

// Rows [begin, end) of these.
template <class T>
GradientRows<T> rows_of(GradientRows<T> all, int64_t begin, int64_t end) {
  const int64_t first = begin * all.c;
  if (all.dy) all.dy += first;
  if (all.x) all.x += first;
  if (all.y) all.y += first;
  all.rows = end - begin;
  return all;
}

ChunkedRange shares_of(const Context& context, int64_t rows, int64_t c) {
  return {context.threads(), rows, std::max<int64_t>(kElementsPerThread / c, 1)};
}

// Adds sum(dz) to sums[0, c) and sum(dz * (x - mean)) to sums[c, 2 c), over all rows, and stores dz in `kept` where
// that is wanted; `buffer` holds 2 c floats.
template <class T>
void add_sums(const BatchNormLoops<T>& loops, const GradientRows<T>& rows, double* sums, float* buffer, T* kept) {
  const int64_t c = rows.c;
  for (int64_t row = 0; row < rows.rows; row += kBlockRows) {
    loops.sums(rows_of(rows, row, std::min(row + kBlockRows, rows.rows)), buffer, buffer + c,
               kept ? kept + row * c : nullptr);
    for (int64_t i = 0; i < 2 * c; ++i) sums[i] += buffer[i];
  }
}

// The sums of all shares, in their order, into the first.
void merge_sums(double* sums, int64_t count, int64_t shares) {
  for (int64_t share = 1; share < shares; ++share)
    for (int64_t i = 0; i < count; ++i) sums[i] += sums[share * count + i];
}

void store_or_add(const Tensor& to, int64_t i, double value, bool add) {
  float& element = to.data<float>()[i];
  element = (add ? element : 0.0f) + static_cast<float>(value);
}

// Adds up over the ranks, as f32, what is in sums[0, size) and `count`, which is returned.
double all_reduce_sum(Context& context, Communicator& ranks, double* sums, int64_t size, double count,
                      const char* what) {
  const Tensor message = context.empty({size + 1});
  float* const all = message.data<float>();
  for (int64_t i = 0; i < size; ++i) all[i] = static_cast<float>(sums[i]);
  all[size] = static_cast<float>(count);
  dtrain::all_reduce_sum(ranks, message, what);
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
  dtrain::all_reduce_sum(ranks, pivots, "batch_norm, means");
  for (int64_t i = 0; i < c; ++i) {
    const PivotSums own = sums_about(pivot[i], {count, mean[i], deviation[i]});
    mean[i] = own.sum;
    deviation[i] = own.square;
  }
  const double total = all_reduce_sum(context, ranks, moments, 2 * c, count, "batch_norm, statistics");
  for (int64_t i = 0; i < c; ++i) {
    const Moments all = moments_about(pivot[i], {mean[i], deviation[i]}, total);
    mean[i] = all.mean;
    deviation[i] = all.deviation;
  }
  return total;
}

// The means of all channels of x, [c], followed by the sums of squared deviations, [c].
Scratch<double> moments_of_all(Context& context, const Tensor& x, int64_t c) {
  const ChunkedRange shares = shares_of(context, x.count() / c, c);
  Scratch<double> moments(context, shares.count() * 2 * c);
  const Scratch<float> buffers(context, context.threads() * 3 * c);
  with_elements(x.dtype(), [&]<class T>(T) {
    const T* const from = x.data<T>();
    parallel_chunks(shares, [&](int64_t thread, int64_t share, int64_t begin, int64_t end) {
      double* own = moments.data() + share * 2 * c;
      range_moments(context.kernels().batch_norm.of<T>(), from + begin * c, end - begin, c, own, own + c,
                    buffers.data() + thread * 3 * c);
    });
  });
  for (int64_t i = 0; i < c; ++i) {
    Moments all;
    for (int64_t share = 0; share < shares.count(); ++share) {
      const double* own = moments.data() + share * 2 * c;
      all = merge(all, {static_cast<double>(shares.end(share) - shares.begin(share)), own[i], own[c + i]});
    }
    moments.data()[i] = all.mean;
    moments.data()[c + i] = all.deviation;
  }
  return moments;
}

// The same from sums.
Scratch<double> moments_from(Context& context, const ChannelStatistics& sums, double count, int64_t c) {
  Scratch<double> moments(context, 2 * c);
  const float *sum = sums.sum.data<float>(), *square = sums.square.data<float>();
  const float* const pivot = sums.pivot ? sums.pivot.data<float>() : nullptr;
  for (int64_t i = 0; i < c; ++i) {
    const Moments all = moments_about(pivot ? pivot[i] : 0, {sum[i], square[i]}, count);
    moments.data()[i] = all.mean;
    moments.data()[c + i] = all.deviation;
  }
  return moments;
}

}  // namespace

void batch_norm_statistics(Context& context, const BatchNormInputs& in, const BatchNormState& state,
                           const BatchNormOptions& options, const Tensor& mean, const Tensor& inv_std) {
  const int64_t c = mean.count();
  double count = static_cast<double>(in.x.count() / c);
  const Scratch<double> moments =
      in.sums.sum ? moments_from(context, in.sums, count, c) : moments_of_all(context, in.x, c);
  const double *const means = moments.data(), *const deviations = means + c;
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

namespace {

void apply(Context& context, const BatchNormInputs& in, const BatchNormOutputs& out) {
  const int64_t c = out.mean.count();
  const Tensor scale = batch_norm_scales(context, in.gamma, out.inv_std);
  with_elements(in.x.dtype(), [&]<class T>(T) {
    const T *const from = in.x.data<T>(), *const add = in.residual ? in.residual.data<T>() : nullptr;
    T* const to = out.y.data<T>();
    const bool non_temporal = is_past_caches<T>(in.x.count() / c, c);
    parallel_chunks(shares_of(context, in.x.count() / c, c), [&](int64_t, int64_t, int64_t begin, int64_t end) {
      const int64_t first = begin * c;
      context.kernels().batch_norm.of<T>().apply({from + first, add ? add + first : nullptr, to + first,
                                                  out.mean.data<float>(), scale.data<float>(), in.beta.data<float>(),
                                                  end - begin, c, c, in.activation, non_temporal});
    });
  });
}

// dgamma and dbeta from the sums of add_sums, and the terms of dx: offset[c] and slope[c], which are `scale` times
// mean_dz and slope of normalize_grad. Over several ranks dx takes the sums of all of them.
void finish_sums(Context& context, const BatchNormSaved& saved, const BatchNormGrads& grads, int64_t rows,
                 const float* scale, double* sums, float* terms) {
  const int64_t c = saved.mean.count();
  const float* const inv_std = saved.inv_std.data<float>();
  for (int64_t i = 0; i < c; ++i) {
    if (grads.dbeta) store_or_add(grads.dbeta, i, sums[i], grads.add_dbeta);
    if (grads.dgamma) store_or_add(grads.dgamma, i, sums[c + i] * inv_std[i], grads.add_dgamma);
  }
  double count = static_cast<double>(rows);
  if (saved.communicator && (grads.dx || grads.deferred))
    count = all_reduce_sum(context, *saved.communicator, sums, 2 * c, count, "batch_norm, gradient");
  for (int64_t i = 0; i < c; ++i) {
    terms[i] = static_cast<float>(scale[i] * sums[i] / count);
    terms[c + i] = static_cast<float>(scale[i] * sums[c + i] * inv_std[i] * inv_std[i] / count);
  }
}

ReluGate gate_of(const BatchNormSaved& saved) {
  if (saved.activation == Activation::none) return ReluGate::none;
  if (saved.activation == Activation::relu6) return saved.y ? ReluGate::y6 : ReluGate::x6;
  return saved.y ? ReluGate::y : ReluGate::x;
}

template <class T>
GradientRows<T> gradient_rows(const T* dy, int64_t rows, const BatchNormSaved& saved, const Tensor& scale) {
  const int64_t c = saved.mean.count();
  const auto pointer = [](const Tensor& tensor) { return tensor ? tensor.data<T>() : nullptr; };
  return {dy,
          pointer(saved.x),
          pointer(saved.y),
          saved.mean.data<float>(),
          scale.data<float>(),
          saved.beta.data<float>(),
          rows,
          c,
          c,
          gate_of(saved)};
}

// Rows that are made at a time, whole blocks.
constexpr int64_t kMadeRows = 4 * kBlockRows;

// From `rows` rows of dy, which lie at `dy`, or are made where that is null.
template <class T>
void grad_as(Context& context, const T* dy, const MakeRows<T>& make, int64_t rows, const BatchNormSaved& saved,
             const BatchNormGrads& grads) {
  const BatchNormLoops<T>& loops = context.kernels().batch_norm.of<T>();
  const int64_t c = saved.mean.count();
  const Tensor scale = batch_norm_scales(context, saved.gamma, saved.inv_std), terms = context.empty({2 * c});
  GradientRows<T> all = gradient_rows<T>(dy, rows, saved, scale);
  T* const kept = grads.dresidual ? grads.dresidual.data<T>() : nullptr;
  const bool constant = saved.constant_statistics;
  const ChunkedRange shares = shares_of(context, rows, c);
  const Scratch<T> made(context, dy ? 0 : context.threads() * kMadeRows * c);
  // body(piece, row) for pieces of rows [begin, end), which begin at `row`.
  const auto for_each_piece = [&](int64_t thread, int64_t begin, int64_t end, const auto& body) {
    if (all.dy) return body(rows_of(all, begin, end), begin);
    for (int64_t row = begin, next; row < end; row = next) {
      next = std::min(row + kMadeRows, end);
      GradientRows<T> piece = rows_of(all, row, next);
      T* const own = made.data() + thread * kMadeRows * c;
      make(row, next, own);
      piece.dy = own;
      body(piece, row);
    }
  };

  if (!constant || grads.dgamma || grads.dbeta) {
    const Scratch<double> sums(context, shares.count() * 2 * c);
    const Scratch<float> buffers(context, context.threads() * 2 * c);
    parallel_chunks(shares, [&](int64_t thread, int64_t share, int64_t begin, int64_t end) {
      std::fill_n(sums.data() + share * 2 * c, 2 * c, 0.0);
      for_each_piece(thread, begin, end, [&](const GradientRows<T>& piece, int64_t row) {
        add_sums(loops, piece, sums.data() + share * 2 * c, buffers.data() + thread * 2 * c,
                 kept ? kept + row * c : nullptr);
      });
    });
    merge_sums(sums.data(), 2 * c, shares.count());
    finish_sums(context, saved, grads, rows, scale.data<float>(), sums.data(), terms.data<float>());
  } else if (kept) {
    parallel_chunks(shares, [&](int64_t thread, int64_t, int64_t begin, int64_t end) {
      for_each_piece(thread, begin, end,
                     [&](const GradientRows<T>& piece, int64_t row) { loops.gate(piece, kept + row * c); });
    });
  }
  if (grads.deferred) *grads.deferred = {saved, kept != nullptr, scale, terms};
  if (!grads.dx) return;
  if (kept) {  // what the first pass has kept, the second need not work out again
    all.dy = kept;
    all.gate = ReluGate::none;
  }
  T* const dx = grads.dx.data<T>();
  StoreMode into = grads.add_dx ? StoreMode::add : StoreMode::store;
  if (into == StoreMode::store && dx != all.dy && is_past_caches<T>(rows, c)) into = StoreMode::non_temporal;
  parallel_chunks(shares, [&](int64_t thread, int64_t, int64_t begin, int64_t end) {
    for_each_piece(thread, begin, end, [&](const GradientRows<T>& piece, int64_t row) {
      loops.dx(piece, constant ? nullptr : terms.data<float>(), terms.data<float>() + c, into, dx + row * c);
    });
  });
}

}  // namespace

void batch_norm_train(Context& context, const BatchNormInputs& in, const BatchNormState& state,
                      const BatchNormOptions& options, const BatchNormOutputs& out) {
  batch_norm_statistics(context, in, state, options, out.mean, out.inv_std);
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
  with_elements(dy.dtype(), [&]<class T>(T) {
    grad_as<T>(context, dy.data<T>(), nullptr, dy.count() / saved.mean.count(), saved, grads);
  });
}

template <class T>
void batch_norm_grad_of(Context& context, const MakeRows<T>& make, int64_t rows, const BatchNormSaved& saved,
                        const BatchNormGrads& grads) {
  grad_as<T>(context, nullptr, make, rows, saved, grads);
}

template void batch_norm_grad_of(Context&, const MakeRows<float>&, int64_t, const BatchNormSaved&,
                                 const BatchNormGrads&);
template void batch_norm_grad_of(Context&, const MakeRows<Bf16>&, int64_t, const BatchNormSaved&,
                                 const BatchNormGrads&);

template <class T>
void deferred_rows(const Context& context, const DeferredGrad& grad, const Tensor& dz, int64_t begin, int64_t end,
                   T* dx) {
  GradientRows<T> all = gradient_rows<T>(dz.data<T>(), dz.count() / grad.saved.mean.count(), grad.saved, grad.scale);
  if (grad.gated) all.gate = ReluGate::none;
  const float* const terms = grad.terms.data<float>();
  context.kernels().batch_norm.of<T>().dx(rows_of(all, begin, end), terms, terms + all.c, StoreMode::store, dx);
}

template void deferred_rows(const Context&, const DeferredGrad&, const Tensor&, int64_t, int64_t, float*);
template void deferred_rows(const Context&, const DeferredGrad&, const Tensor&, int64_t, int64_t, Bf16*);

}  // namespace dtrain::cpu
