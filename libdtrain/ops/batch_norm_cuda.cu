// CUDA arm of batch_norm, forward. Two schedules over the same tiling, with the same bits: two passes over memory, or
// one launch of resident blocks that keep what they have read. Statistics of several ranks take two passes.
#include "dtrain/distributed/communicator.h"
#include "libdtrain/ops/batch_norm_kernels.cuh"
#include "libdtrain/ops/batch_norm_parts.h"

namespace dtrain::cuda {
namespace {

template <class T>
struct Forward {
  Tiling tiling;
  const T *x, *residual;
  T* y;
  uint8_t* mask;
  T *load_scale, *load_shift;  // see OnLoad
  const float *gamma, *beta;
  float *mean, *inv_std;
  float *running_mean, *running_var;
  Sums* partial;
  const float *sum, *square;  // those over x, where they are known
  int ranks;                  // whose statistics are taken
  float* message;             // with several ranks: PivotSums [2, c], and the count; the pivots are in `mean`
  float floor;                // the least y: 0 for relu, else minus infinity
  float epsilon, momentum;
  bool unbiased;  // the variance that goes into the running one
};

// The sums of x and x^2 over a thread's rows, the last row first: those that were read last, the first rows, are then
// still in L2 when `normalize_rows` starts with them. They are made in float, of x less the first one read: few and
// small numbers, so that little is lost.
template <class T, int n>
__device__ void sum_rows(const T* x, const Place& place, Tile<T, n> tile, Sums (&total)[n]) {
  constexpr int kUnroll = 8;
  float shift[n] = {}, sum[n] = {}, square[n] = {};
  for (int end = place.count; end > 0; end -= kUnroll) {
    Access<T, n> in[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) in[u] = read<T, n>(x + place.offset(max(end - 1 - u, 0)));
    if (end == place.count) decode(in[0], shift);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (u < end) {
        tile.put(place.count - end + u, in[u]);
        float value[n];
        decode(in[u], value);
#pragma unroll
        for (int l = 0; l < n; ++l) {
          const float d = value[l] - shift[l];
          sum[l] += d;
          square[l] += d * d;
        }
      }
  }
  const double count = place.count;
#pragma unroll
  for (int l = 0; l < n; ++l) {
    const double s = sum[l], k = shift[l];
    total[l] = {s + count * k, square[l] + k * (2 * s + count * k)};
  }
}

// mean and gamma / deviation of a thread's channels. With constant statistics the inverse deviation is made here, and
// written by the first threads that work on the channels.
template <class T, int n, bool kConstant>
__device__ void load_statistics(const Forward<T>& f, const Place& place, float (&mean)[n], float (&scale)[n]) {
  load_channels(kConstant ? f.running_mean : f.mean, place.channel, mean);
  load_channels(kConstant ? f.running_var : f.inv_std, place.channel, scale);
  if constexpr (kConstant) {
#pragma unroll
    for (int l = 0; l < n; ++l) scale[l] = 1 / sqrtf(scale[l] + f.epsilon);
    if (row_block() == 0 && threadIdx.x < Tiling::kColumns) {
#pragma unroll
      for (int l = 0; l < n; ++l) f.inv_std[place.channel + l] = scale[l];
    }
  }
#pragma unroll
  for (int l = 0; l < n; ++l) scale[l] *= f.gamma[place.channel + l];
}

// y of a part of a thread's rows, from the tile where it holds them.
template <class T, int n, bool kResidual, bool kConstant = false>
__device__ void normalize_rows(const Forward<T>& f, const Place& place, Part part, Tile<T, n> tile) {
  constexpr int kUnroll = kResidual ? 4 : 8;
  const int begin = part.begin(place.count), end = part.end(place.count);
  if (begin >= end) return;
  float mean[n], scale[n], beta[n];
  load_statistics<T, n, kConstant>(f, place, mean, scale);
  load_channels(f.beta, place.channel, beta);
  for (int first = begin; first < end; first += kUnroll) {
    Access<T, n> in[kUnroll], more[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int i = min(first + u, end - 1), age = place.count - 1 - i;
      in[u] = tile.has(age) ? tile[age] : read<T, n>(f.x + place.offset(i));
      if constexpr (kResidual) more[u] = read<T, n>(f.residual + place.offset(i));
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (first + u < end) {
        float value[n], add[n];
        unsigned gate = 0;
        decode(in[u], value);
        if constexpr (kResidual) decode(more[u], add);
#pragma unroll
        for (int l = 0; l < n; ++l) {
          value[l] = normalize(value[l], mean[l], scale[l], beta[l]);
          if constexpr (kResidual) value[l] += add[l];
          if (value[l] > 0) gate |= 1u << l;
          value[l] = value[l] < f.floor ? f.floor : value[l];  // lets a NaN through
        }
        write(f.y + place.offset(first + u), encode<T>(value));
        if (f.mask) f.mask[place.mask_offset(first + u)] = static_cast<uint8_t>(gate);
      }
  }
}

template <class T>
__device__ Moments own_moments(const Forward<T>& f, const Sums& sums) {
  return moments_of(sums.first, sums.second, static_cast<double>(f.tiling.rows));
}

template <class T>
__device__ void finish_statistics(const Forward<T>& f, int64_t channel, const Moments& all) {
  const float mean = static_cast<float>(all.mean);
  const double running_count = f.unbiased && all.count > 1 ? all.count - 1 : all.count;
  const float inv_std = inverse_deviation(all.deviation / all.count, f.epsilon);
  f.mean[channel] = mean;
  f.inv_std[channel] = inv_std;
  f.running_mean[channel] = blend(f.running_mean[channel], mean, f.momentum);
  f.running_var[channel] = blend(f.running_var[channel], static_cast<float>(all.deviation / running_count), f.momentum);
  if (f.load_scale) {
    const T scale = from_float<T>(f.gamma[channel] * inv_std);
    f.load_scale[channel] = scale;
    f.load_shift[channel] = from_float<T>(f.beta[channel] - mean * to_float(scale));  // beta at the mean all the same
  }
}

template <class T, int n>
__global__ void __launch_bounds__(Tiling::kThreads) statistics_kernel(const Forward<T> f) {
  Sums sums[n];
  const int slice = slice_of_block();
  sum_rows<T, n>(f.x, place_in(f.tiling, slice), Tile<T, n>(f.tiling, 0), sums);
  store_partial(f.tiling, slice, sums, f.partial);
}

template <class T>
__global__ void __launch_bounds__(kFinishThreads) finish_kernel(const Forward<T> f) {
  finish_channels(f.tiling, 0, f.tiling.c, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x), f.partial,
                  [&](int64_t channel, const Sums& sums) { finish_statistics(f, channel, own_moments(f, sums)); });
}

template <class T>
__global__ void __launch_bounds__(kFinishThreads) finish_known_kernel(const Forward<T> f) {
  const int64_t channel = int64_t{blockIdx.x} * kFinishThreads + threadIdx.x;
  if (channel < f.tiling.c) finish_statistics(f, channel, own_moments(f, {f.sum[channel], f.square[channel]}));
}

// This rank's part of the pivots.
template <class T>
__global__ void __launch_bounds__(kFinishThreads) pivot_kernel(const Forward<T> f) {
  finish_channels(f.tiling, 0, f.tiling.c, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x), f.partial,
                  [&](int64_t channel, const Sums& sums) {
                    f.mean[channel] = static_cast<float>(own_moments(f, sums).mean / f.ranks);
                  });
}

template <class T>
__global__ void __launch_bounds__(kFinishThreads) message_kernel(const Forward<T> f) {
  const int64_t c = f.tiling.c;
  finish_channels(f.tiling, 0, c, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x), f.partial,
                  [&](int64_t channel, const Sums& sums) {
                    const PivotSums own = sums_about(f.mean[channel], own_moments(f, sums));
                    f.message[channel] = static_cast<float>(own.sum);
                    f.message[c + channel] = static_cast<float>(own.square);
                    if (channel == 0) f.message[2 * c] = static_cast<float>(f.tiling.rows);
                  });
}

template <class T>
__global__ void __launch_bounds__(kFinishThreads) finish_message_kernel(const Forward<T> f) {
  const int64_t channel = int64_t{blockIdx.x} * kFinishThreads + threadIdx.x, c = f.tiling.c;
  if (channel < c)
    finish_statistics(f, channel,
                      moments_about(f.mean[channel], {f.message[channel], f.message[c + channel]}, f.message[2 * c]));
}

template <class T, int n, bool kResidual, bool kConstant>
__global__ void __launch_bounds__(Tiling::kThreads) apply_kernel(const Forward<T> f) {
  const Place place = place_in(f.tiling, slice_of_block());
  normalize_rows<T, n, kResidual, kConstant>(f, place, Part::all, Tile<T, n>(f.tiling, 0));
}

template <class T, int n, bool kResidual>
struct ForwardPass {
  const Forward<T>& f;
  __device__ void read(int slice, int tile) const {
    Sums sums[n];
    sum_rows<T, n>(f.x, place_in(f.tiling, slice), Tile<T, n>(f.tiling, tile), sums);
    store_partial(f.tiling, slice, sums, f.partial);
  }
  __device__ void finish(int64_t begin, int64_t end, int block, int blocks) const {
    finish_channels(f.tiling, begin, end, block, blocks, f.partial,
                    [&](int64_t channel, const Sums& sums) { finish_statistics(f, channel, own_moments(f, sums)); });
  }
  __device__ void write(int slice, int tile, Part part) const {
    normalize_rows<T, n, kResidual>(f, place_in(f.tiling, slice), part, Tile<T, n>(f.tiling, tile));
  }
};

template <class T, int n, bool kResidual>
__global__ void __launch_bounds__(Tiling::kThreads, 1) resident_forward_kernel(const Forward<T> f) {
  const ForwardPass<T, n, kResidual> pass{f};
  run_resident(f.tiling, pass);
}

template <class T>
Forward<T> operands(const Tiling& tiling, const BatchNormInputs& in, const BatchNormState& state,
                    const BatchNormOptions& options, const BatchNormOutputs& out) {
  return {.tiling = tiling,
          .x = in.x.data<T>(),
          .residual = in.residual ? in.residual.data<T>() : nullptr,
          .y = out.y ? out.y.data<T>() : nullptr,
          .mask = out.mask ? out.mask.data<uint8_t>() : nullptr,
          .load_scale = out.load.scale ? out.load.scale.data<T>() : nullptr,
          .load_shift = out.load.shift ? out.load.shift.data<T>() : nullptr,
          .gamma = in.gamma.data<float>(),
          .beta = in.beta.data<float>(),
          .mean = out.mean.data<float>(),
          .inv_std = out.inv_std.data<float>(),
          .running_mean = state.running_mean.data<float>(),
          .running_var = state.running_var.data<float>(),
          .partial = nullptr,
          .sum = in.sums.sum ? in.sums.sum.data<float>() : nullptr,
          .square = in.sums.square ? in.sums.square.data<float>() : nullptr,
          .ranks = 1,
          .message = nullptr,
          .floor = in.activation == Activation::relu ? 0 : -std::numeric_limits<float>::infinity(),
          .epsilon = options.epsilon,
          .momentum = options.momentum,
          .unbiased = options.unbiased_running_variance};
}

template <class T, int n, bool kConstant>
void launch_apply(Context& context, const Forward<T>& f) {
  launch(context, f.residual ? apply_kernel<T, n, true, kConstant> : apply_kernel<T, n, false, kConstant>,
         {two_pass_grid(f.tiling), Tiling::kThreads}, f);
}

template <class T, int n>
void launch_sums(Context& context, const Forward<T>& f) {
  launch(context, statistics_kernel<T, n>,
         {two_pass_grid(f.tiling), Tiling::kThreads, static_cast<size_t>(f.tiling.sums_bytes())}, f);
}

template <class T, int n>
void launch_train(Context& context, Forward<T> f, bool resident) {
  if (resident &&
      launch_resident(context, f.residual ? resident_forward_kernel<T, n, true> : resident_forward_kernel<T, n, false>,
                      f, sizeof(T)))
    return;
  f.tiling.kept = 0;
  if (f.sum) {
    launch(context, finish_known_kernel<T>, {channel_blocks(f.tiling), kFinishThreads}, f);
  } else {
    launch_sums<T, n>(context, f);
    launch(context, finish_kernel<T>, {finish_blocks(f.tiling), kFinishThreads}, f);
  }
  if (f.y) launch_apply<T, n, false>(context, f);
}

// `mean`: the tensor of f.mean.
template <class T, int n>
void launch_synchronised(Context& context, Forward<T> f, Communicator& ranks, const Tensor& mean) {
  const Tensor message = context.empty({2 * f.tiling.c + 1});
  f.tiling.kept = 0;
  f.ranks = ranks.size();
  f.message = message.data<float>();
  launch_sums<T, n>(context, f);
  launch(context, pivot_kernel<T>, {finish_blocks(f.tiling), kFinishThreads}, f);
  all_reduce_sum(ranks, mean, "batch_norm, means");
  launch(context, message_kernel<T>, {finish_blocks(f.tiling), kFinishThreads}, f);
  all_reduce_sum(ranks, message, "batch_norm, statistics");
  launch(context, finish_message_kernel<T>, {channel_blocks(f.tiling), kFinishThreads}, f);
  if (f.y) launch_apply<T, n, false>(context, f);
}

}  // namespace

void batch_norm_train(Context& context, const BatchNormInputs& in, const BatchNormState& state,
                      const BatchNormOptions& options, const BatchNormOutputs& out) {
  const Tiling tiling = tiling_of(context, in.x, 1);
  const Tensor partial = partial_sums(context, tiling);
  dispatch_lanes("batch_norm", in.x, [&]<class T>(T, auto lanes) {
    Forward<T> f = operands<T>(tiling, in, state, options, out);
    f.partial = reinterpret_cast<Sums*>(partial.raw());
    if (Communicator* const ranks = synchronised_by(options))
      return launch_synchronised<T, lanes>(context, f, *ranks, out.mean);
    const auto dry_run = [&](bool resident) {  // y is written once more than it need be; the running statistics are not
      Forward<T> dry = f;
      const Tensor running = context.empty({2, tiling.c});
      dry.running_mean = running.data<float>();
      dry.running_var = dry.running_mean + tiling.c;
      launch_train<T, lanes>(context, dry, resident);
    };
    const BatchNormCall call{tiling.rows,          tiling.c, in.x.dtype(), false, in.activation == Activation::relu,
                             in.residual.defined()};
    const bool resident = out.y && !in.sums.sum && batch_norm_plans(context).resident(context, call, tiling, dry_run);
    launch_train<T, lanes>(context, f, resident);
  });
}

void batch_norm_infer(Context& context, const BatchNormInputs& in, const BatchNormState& state,
                      const BatchNormOptions& options, const BatchNormOutputs& out) {
  Tiling tiling = tiling_of(context, in.x, 1);
  tiling.kept = 0;
  dispatch_lanes("batch_norm", in.x, [&]<class T>(T, auto lanes) {
    launch_apply<T, lanes, true>(context, operands<T>(tiling, in, state, options, out));
  });
}

}  // namespace dtrain::cuda
