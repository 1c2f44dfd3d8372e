// CUDA arm of bn_relu_max_pool, forward: the statistics as in batch_norm, then one pass from x to the pooled image.
#include "libdtrain/core/divisor.h"
#include "libdtrain/ops/batch_norm_kernels.cuh"
#include "libdtrain/ops/bn_relu_max_pool_parts.h"
#include "libdtrain/ops/pool_math.h"

namespace dtrain::cuda {
namespace {

constexpr int kColumns = Tiling::kColumns, kPixels = kThreads / kColumns;

template <class T>
struct Operands {
  PoolGeometry geometry;
  Divisor columns, rows;  // divide by those of the pooled image
  int64_t pixels;         // in all pooled images
  const T* x;
  T* y;
  uint8_t* argmax;
  const float *mean, *inv_std, *gamma, *beta;
};

// A thread has n channels of every so many pooled pixels. Each value is rounded as batch_norm would have written it, so
// that ties are those of the composition. In place of a cell of the padding comes the nearest one of the image, which
// does not win over itself. k: side of a square window whose rows are loaded at once; 0: a window of any size.
template <class T, int n, int k>
__global__ void __launch_bounds__(kThreads) bn_relu_max_pool_kernel(const Operands<T> o) {
  const PoolGeometry& g = o.geometry;
  const int64_t channel = (int64_t{blockIdx.x} * kColumns + threadIdx.x % kColumns) * n;
  if (channel >= g.c) return;
  float mean[n], scale[n], beta[n];
  load_channels(o.mean, channel, mean);
  load_channels(o.inv_std, channel, scale);
  load_channels(o.beta, channel, beta);
#pragma unroll
  for (int l = 0; l < n; ++l) scale[l] *= o.gamma[channel + l];
  constexpr int kTogether = k > 0 ? k : 1;
  const int height = k > 0 ? k : g.rows.kernel, width = k > 0 ? k : g.columns.kernel;
  for (int64_t pixel = int64_t{blockIdx.y} * kPixels + threadIdx.x / kColumns; pixel < o.pixels;
       pixel += int64_t{gridDim.y} * kPixels) {
    auto image = static_cast<uint32_t>(pixel);
    const uint32_t q = o.columns.split(image), p = o.rows.split(image);
    const int64_t top = g.rows.start(p), left = g.columns.start(q);
    float best[n];
    int winner[n];
#pragma unroll
    for (int l = 0; l < n; ++l) best[l] = -INFINITY, winner[l] = 0;
    for (int r = 0; r < height; ++r) {
      const int h = clamped(top + r, g.rows.in);
      for (int first = 0; first < width; first += kTogether) {
        Access<T, n> in[kTogether];
#pragma unroll
        for (int s = 0; s < kTogether; ++s)
          in[s] = read<T, n>(o.x + g.x_pixel(image, h, clamped(left + first + s, g.columns.in)) + channel);
#pragma unroll
        for (int s = 0; s < kTogether; ++s) {
          const int cell = static_cast<int>((h - top) * width + clamped(left + first + s, g.columns.in) - left);
          float value[n];
          decode(in[s], value);
#pragma unroll
          for (int l = 0; l < n; ++l) {
            value[l] = normalize(value[l], mean[l], scale[l], beta[l]);
            value[l] = value[l] < 0 ? 0 : value[l];  // lets a NaN through
          }
          decode(encode<T>(value), value);
#pragma unroll
          for (int l = 0; l < n; ++l) {
            const bool wins = wins_window(value[l], best[l]);
            best[l] = wins ? value[l] : best[l];
            winner[l] = wins ? cell : winner[l];
          }
        }
      }
    }
    const int64_t out = pixel * g.c + channel;
    const Access<T, n> y = encode<T>(best);
    if constexpr (sizeof(y) == sizeof(uint4))  // a plain store comes out as four of single words here
      __stcg(reinterpret_cast<uint4*>(o.y + out), bits_as<uint4>(y));
    else
      write(o.y + out, y);
    Pack<uint8_t, n> winners;
#pragma unroll
    for (int l = 0; l < n; ++l) winners.lane[l] = static_cast<uint8_t>(winner[l]);
    if (o.argmax != nullptr) store(o.argmax + out, winners);
  }
}

}  // namespace

void bn_relu_max_pool(Context& context, const BatchNormInputs& in, const BatchNormState& state,
                      const BatchNormOptions& bn, const PoolOptions& pool, const BatchNormOutputs& out,
                      const Tensor& argmax) {
  batch_norm_train(context, in, state, bn, {{}, out.mean, out.inv_std, {}});
  const int64_t pixels = out.y.count() / out.y.dim(3);
  DT_CHECK(pixels < int64_t{1} << 31, "bn_relu_max_pool: ", out.y.shape(), " has too many pixels for the GPU");
  dispatch_lanes("bn_relu_max_pool", in.x, [&]<class T>(T, auto lanes) {
    const Operands<T> operands{.geometry = PoolGeometry(in.x, out.y, pool),
                               .columns = Divisor(out.y.dim(2)),
                               .rows = Divisor(out.y.dim(1)),
                               .pixels = pixels,
                               .x = in.x.data<T>(),
                               .y = out.y.data<T>(),
                               .argmax = argmax ? argmax.data<uint8_t>() : nullptr,
                               .mean = out.mean.data<float>(),
                               .inv_std = out.inv_std.data<float>(),
                               .gamma = in.gamma.data<float>(),
                               .beta = in.beta.data<float>()};
    const bool three = pool.kernel.h == 3 && pool.kernel.w == 3;
    const int64_t slices = (out.y.dim(3) + kColumns * lanes - 1) / (kColumns * lanes);
    const dim3 grid{static_cast<unsigned>(slices), blocks_for(context, pixels * kColumns, kThreads)};
    launch(context, three ? bn_relu_max_pool_kernel<T, lanes, 3> : bn_relu_max_pool_kernel<T, lanes, 0>,
           {grid, kThreads}, operands);
  });
}

}  // namespace dtrain::cuda
