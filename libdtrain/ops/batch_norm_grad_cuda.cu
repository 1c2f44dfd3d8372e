// CUDA arm of batch_norm, backward: relu's gate, the sums of a channel, dx and the residual's gradient. The schedules
// are those of the forward pass.
#include "libdtrain/ops/batch_norm_kernels.cuh"
#include "libdtrain/ops/batch_norm_parts.h"

namespace dtrain::cuda {
namespace {

// What decides whether relu let an element through: nothing (no relu), the mask, or the sign of y made again from x.
enum class Gate { open, mask, x };

template <class T>
struct Backward {
  Tiling tiling;
  Gate gate;
  const T *dy, *x;
  const uint8_t* mask;
  T *dx, *dresidual;
  bool add_dx, add_dgamma, add_dbeta, constant;
  const float *mean, *inv_std, *gamma, *beta;
  float *dgamma, *dbeta;
  float *mean_dz, *slope;  // see normalize_grad
  Sums* partial;
  float* message;                           // with several ranks: their sums [2, c], and the count
  const float *known_dbeta, *known_dgamma;  // this call's alone, where they are known; dy has then passed the gate
};

// The constants of a thread's channels.
template <int n>
struct Channels {
  float mean[n], scale[n], beta[n];

  template <class T>
  __device__ Channels(const Backward<T>& b, int64_t channel) {
    load_channels(b.mean, channel, mean);
    load_channels(b.inv_std, channel, scale);
    load_channels(b.beta, channel, beta);
#pragma unroll
    for (int l = 0; l < n; ++l) scale[l] *= b.gamma[channel + l];
  }
};

// Closes the gate: makes dz of dy.
template <int n>
__device__ void pass_gate(Gate gate, const float (&x)[n], unsigned mask, const Channels<n>& of, float (&dy)[n]) {
  if (gate == Gate::open) return;
#pragma unroll
  for (int l = 0; l < n; ++l) {
    const bool open =
        gate == Gate::mask ? (mask >> l & 1) != 0 : normalize(x[l], of.mean[l], of.scale[l], of.beta[l]) > 0;
    if (!open) dy[l] = 0;
  }
}

// The sums of dz and dz * (x - mean) over a thread's rows, the last row first, as in the forward pass.
template <class T, int n>
__device__ void sum_rows(const Backward<T>& b, const Place& place, Tile<T, n> kept_dz, Tile<T, n> kept_x,
                         Sums (&total)[n]) {
  constexpr int kUnroll = 4;
  float sum[n] = {}, product[n] = {};
  if (place.count > 0) {
    const Channels<n> of(b, place.channel);
    for (int end = place.count; end > 0; end -= kUnroll) {
      Access<T, n> dy[kUnroll], x[kUnroll];
      unsigned mask[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int i = max(end - 1 - u, 0);
        dy[u] = read<T, n>(b.dy + place.offset(i));
        x[u] = read<T, n>(b.x + place.offset(i));
        mask[u] = b.gate == Gate::mask ? b.mask[place.mask_offset(i)] : 0;
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (u < end) {
          float dz[n], value[n];
          decode(dy[u], dz);
          decode(x[u], value);
          pass_gate(b.gate, value, mask[u], of, dz);
          kept_dz.put(place.count - end + u, encode<T>(dz));
          kept_x.put(place.count - end + u, x[u]);
#pragma unroll
          for (int l = 0; l < n; ++l) {
            sum[l] += dz[l];
            product[l] += dz[l] * (value[l] - of.mean[l]);
          }
        }
    }
  }
#pragma unroll
  for (int l = 0; l < n; ++l) total[l] = {sum[l], product[l]};
}

// dx and dresidual, where wanted, of a part of a thread's rows. x is not read where it decides nothing.
template <class T, int n, bool kConstant>
__device__ void write_rows(const Backward<T>& b, const Place& place, Part part, Tile<T, n> kept_dz, Tile<T, n> kept_x) {
  constexpr int kUnroll = 3;  // with 4 the resident kernel spills
  const int begin = part.begin(place.count), end = part.end(place.count);
  if (begin >= end) return;
  const Channels<n> of(b, place.channel);
  float mean_dz[n] = {}, slope[n] = {};
  if constexpr (!kConstant) {
    load_channels(b.mean_dz, place.channel, mean_dz);
    load_channels(b.slope, place.channel, slope);
  }
  const bool reads_x = !kConstant || b.gate == Gate::x;
  for (int first = begin; first < end; first += kUnroll) {
    Access<T, n> dz[kUnroll], x[kUnroll] = {};
    unsigned mask[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int i = min(first + u, end - 1), age = place.count - 1 - i;
      const int64_t offset = place.offset(i);
      const bool kept = kept_dz.has(age);
      dz[u] = kept ? kept_dz[age] : read<T, n>(b.dy + offset);
      if (reads_x) x[u] = kept ? kept_x[age] : read<T, n>(b.x + offset);
      mask[u] = b.gate == Gate::mask && !kept ? b.mask[place.mask_offset(i)] : 0;
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (first + u < end) {
        const int64_t offset = place.offset(first + u);
        float value[n], from[n], dx[n] = {};
        decode(dz[u], value);
        decode(x[u], from);
        if (!kept_dz.has(place.count - 1 - first - u)) pass_gate(b.gate, from, mask[u], of, value);
        if (b.dresidual) write(b.dresidual + offset, encode<T>(value));
        if (!b.dx) continue;
        if (b.add_dx) decode(read<T, n>(b.dx + offset), dx);
#pragma unroll
        for (int l = 0; l < n; ++l) {
          float fresh = value[l] * of.scale[l];
          if constexpr (!kConstant)
            fresh = normalize_grad(value[l], from[l], of.mean[l], of.scale[l], mean_dz[l], slope[l]);
          dx[l] += fresh;
        }
        write(b.dx + offset, encode<T>(dx));
      }
  }
}

template <class T>
__device__ void write_terms(const Backward<T>& b, int64_t channel, const Sums& sums, double inv_std, double count) {
  b.mean_dz[channel] = static_cast<float>(sums.first / count);
  b.slope[channel] = static_cast<float>(sums.second * inv_std * inv_std / count);
}

template <class T>
__device__ void finish_channel(const Backward<T>& b, int64_t channel, const Sums& sums) {
  const double inv_std = b.inv_std[channel], count = static_cast<double>(b.tiling.rows);
  if (b.dbeta) b.dbeta[channel] = (b.add_dbeta ? b.dbeta[channel] : 0) + static_cast<float>(sums.first);
  if (b.dgamma) b.dgamma[channel] = (b.add_dgamma ? b.dgamma[channel] : 0) + static_cast<float>(sums.second * inv_std);
  if (b.constant) return;
  write_terms(b, channel, sums, inv_std, count);
}

template <class T, int n>
__global__ void __launch_bounds__(Tiling::kThreads) sums_kernel(const Backward<T> b) {
  Sums sums[n];
  const int slice = slice_of_block();
  const Tile<T, n> none(b.tiling, 0);
  sum_rows<T, n>(b, place_in(b.tiling, slice), none, none, sums);
  store_partial(b.tiling, slice, sums, b.partial);
}

template <class T>
__global__ void __launch_bounds__(kFinishThreads) finish_grad_kernel(const Backward<T> b) {
  finish_channels(b.tiling, 0, b.tiling.c, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x), b.partial,
                  [&](int64_t channel, const Sums& sums) { finish_channel(b, channel, sums); });
}

template <class T>
__global__ void __launch_bounds__(kFinishThreads) finish_known_grad_kernel(const Backward<T> b) {
  const int64_t channel = int64_t{blockIdx.x} * kFinishThreads + threadIdx.x;
  if (channel < b.tiling.c)
    finish_channel(b, channel, {b.known_dbeta[channel], double{b.known_dgamma[channel]} / b.inv_std[channel]});
}

// The terms that this writes are those of this rank's images; finish_message_kernel writes them anew.
template <class T>
__global__ void __launch_bounds__(kFinishThreads) message_kernel(const Backward<T> b) {
  const int64_t c = b.tiling.c;
  finish_channels(b.tiling, 0, c, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x), b.partial,
                  [&](int64_t channel, const Sums& sums) {
                    finish_channel(b, channel, sums);
                    b.message[channel] = static_cast<float>(sums.first);
                    b.message[c + channel] = static_cast<float>(sums.second);
                    if (channel == 0) b.message[2 * c] = static_cast<float>(b.tiling.rows);
                  });
}

template <class T>
__global__ void __launch_bounds__(kFinishThreads) finish_message_kernel(const Backward<T> b) {
  const int64_t channel = int64_t{blockIdx.x} * kFinishThreads + threadIdx.x, c = b.tiling.c;
  if (channel < c)
    write_terms(b, channel, {b.message[channel], b.message[c + channel]}, b.inv_std[channel], b.message[2 * c]);
}

template <class T, int n, bool kConstant>
__global__ void __launch_bounds__(Tiling::kThreads) dx_kernel(const Backward<T> b) {
  const Place place = place_in(b.tiling, slice_of_block());
  const Tile<T, n> none(b.tiling, 0);
  write_rows<T, n, kConstant>(b, place, Part::all, none, none);
}

// Tile 2 i keeps dz, tile 2 i + 1 x.
template <class T, int n>
struct BackwardPass {
  const Backward<T>& b;
  __device__ void read(int slice, int tile) const {
    Sums sums[n];
    sum_rows<T, n>(b, place_in(b.tiling, slice), Tile<T, n>(b.tiling, 2 * tile), Tile<T, n>(b.tiling, 2 * tile + 1),
                   sums);
    store_partial(b.tiling, slice, sums, b.partial);
  }
  __device__ void finish(int64_t begin, int64_t end, int block, int blocks) const {
    finish_channels(b.tiling, begin, end, block, blocks, b.partial,
                    [&](int64_t channel, const Sums& sums) { finish_channel(b, channel, sums); });
  }
  __device__ void write(int slice, int tile, Part part) const {
    write_rows<T, n, false>(b, place_in(b.tiling, slice), part, Tile<T, n>(b.tiling, 2 * tile),
                            Tile<T, n>(b.tiling, 2 * tile + 1));
  }
};

template <class T, int n>
__global__ void __launch_bounds__(Tiling::kThreads, 1) resident_backward_kernel(const Backward<T> b) {
  const BackwardPass<T, n> pass{b};
  run_resident(b.tiling, pass);
}

template <class T>
Backward<T> operands(const Tiling& tiling, const Tensor& dy, const BatchNormSaved& saved, const BatchNormGrads& grads) {
  auto pointer = []<class E>(const Tensor& tensor, E) { return tensor ? tensor.data<E>() : nullptr; };
  const Gate gate = saved.activation == Activation::none || saved.dbeta ? Gate::open
                    : saved.mask                                        ? Gate::mask
                                                                        : Gate::x;
  return {.tiling = tiling,
          .gate = gate,
          .dy = dy.data<T>(),
          .x = pointer(saved.x, T()),
          .mask = pointer(saved.mask, uint8_t()),
          .dx = pointer(grads.dx, T()),
          .dresidual = pointer(grads.dresidual, T()),
          .add_dx = grads.add_dx,
          .add_dgamma = grads.add_dgamma,
          .add_dbeta = grads.add_dbeta,
          .constant = saved.constant_statistics,
          .mean = saved.mean.data<float>(),
          .inv_std = saved.inv_std.data<float>(),
          .gamma = saved.gamma.data<float>(),
          .beta = saved.beta.data<float>(),
          .dgamma = pointer(grads.dgamma, float()),
          .dbeta = pointer(grads.dbeta, float()),
          .mean_dz = nullptr,
          .slope = nullptr,
          .partial = nullptr,
          .message = nullptr,
          .known_dbeta = pointer(saved.dbeta, float()),
          .known_dgamma = pointer(saved.dgamma, float())};
}

template <class T, int n>
void launch_sums(Context& context, const Backward<T>& b) {
  launch(context, sums_kernel<T, n>,
         {two_pass_grid(b.tiling), Tiling::kThreads, static_cast<size_t>(b.tiling.sums_bytes())}, b);
}

template <class T, int n>
void launch_results(Context& context, const Backward<T>& b) {
  if (b.dx || b.dresidual)
    launch(context, b.constant ? dx_kernel<T, n, true> : dx_kernel<T, n, false>,
           {two_pass_grid(b.tiling), Tiling::kThreads}, b);
}

template <class T, int n>
void launch_grad(Context& context, Backward<T> b, bool resident) {
  if (resident && launch_resident(context, resident_backward_kernel<T, n>, b, 2 * sizeof(T))) return;
  b.tiling.kept = 0;
  if (b.known_dbeta) {
    launch(context, finish_known_grad_kernel<T>, {channel_blocks(b.tiling), kFinishThreads}, b);
  } else if (!b.constant || b.dgamma || b.dbeta) {
    launch_sums<T, n>(context, b);
    launch(context, finish_grad_kernel<T>, {finish_blocks(b.tiling), kFinishThreads}, b);
  }
  launch_results<T, n>(context, b);
}

template <class T, int n>
void launch_synchronised_grad(Context& context, Backward<T> b, Communicator& ranks) {
  const Tensor message = context.empty({2 * b.tiling.c + 1});
  b.tiling.kept = 0;
  b.message = message.data<float>();
  launch_sums<T, n>(context, b);
  launch(context, message_kernel<T>, {finish_blocks(b.tiling), kFinishThreads}, b);
  all_reduce_sum(ranks, message, "batch_norm, gradient");
  launch(context, finish_message_kernel<T>, {channel_blocks(b.tiling), kFinishThreads}, b);
  launch_results<T, n>(context, b);
}

}  // namespace

void batch_norm_grad(Context& context, const Tensor& dy, const BatchNormSaved& saved, const BatchNormGrads& grads) {
  // Sums of gradients are under way in the backward pass alone.
  const Tiling tiling = tiling_of(context, dy, 2, context.runtime().held_by_collectives());
  const Tensor partial = partial_sums(context, tiling), terms = context.empty({2, tiling.c});
  dispatch_lanes("batch_norm_grad", dy, [&]<class T>(T, auto lanes) {
    Backward<T> b = operands<T>(tiling, dy, saved, grads);
    b.partial = reinterpret_cast<Sums*>(partial.raw());
    b.mean_dz = terms.data<float>();
    b.slope = b.mean_dz + tiling.c;
    if (saved.communicator && b.dx) return launch_synchronised_grad<T, lanes>(context, b, *saved.communicator);
    const auto dry_run = [&](bool resident) {  // into memory that nobody reads
      Backward<T> dry = b;
      const Tensor images = context.empty({b.dx && b.dresidual ? 2 : 1, dy.count()}, dy.dtype());
      const Tensor parameters = context.empty({2, tiling.c});
      if (b.dx) dry.dx = images.data<T>();
      if (b.dresidual) dry.dresidual = images.slice(images.dim(0) - 1, images.dim(0)).data<T>();
      if (b.dgamma) dry.dgamma = parameters.data<float>();
      if (b.dbeta) dry.dbeta = parameters.data<float>() + tiling.c;
      launch_grad<T, lanes>(context, dry, resident);
    };
    const BatchNormCall call{tiling.rows, tiling.c, dy.dtype(), true, b.gate != Gate::open, b.dresidual != nullptr};
    const bool resident = !b.constant && !b.known_dbeta && (b.dx || b.dresidual) &&
                          batch_norm_plans(context).resident(context, call, tiling, dry_run);
    launch_grad<T, lanes>(context, b, resident);
  });
}

}  // namespace dtrain::cuda
