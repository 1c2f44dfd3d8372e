// CUDA kernels of group_norm. One block per group of an image reads it three times (mean, deviation, output), from
// cache except the first time if the group is small. Parameter gradients are column sums.
#include "dtrain/ops/group_norm.h"
#include "libdtrain/core/divisor.h"
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/batch_norm_math.h"
#include "libdtrain/ops/conv2d_kernels.h"
#include "libdtrain/ops/group_norm_kernels.h"

namespace dtrain::cuda {
namespace {

constexpr int kMostThreads = 512;  // per block

// A group's elements in vector accesses of n channels, pixel by pixel.
struct Geometry {
  int64_t pixels, c, groups, width;  // `width`: channels per group
  Divisor accesses;                  // by accesses per pixel
  uint32_t count;                    // accesses per group

  Geometry(const GroupNormSaved& saved, int n)
      : pixels(saved.x.dim(1)),
        c(saved.x.dim(2)),
        groups(saved.mean.dim(1)),
        width(c / groups),
        accesses(width / n),
        count(static_cast<uint32_t>(pixels * (width / n))) {
    DT_CHECK(pixels * (width / n) < int64_t{1} << 31, "group_norm: a group of ", pixels * width,
             " elements; expected fewer than 2^31");
  }
  __device__ float size() const { return static_cast<float>(pixels * width); }
  // First element of the block's group.
  __device__ int64_t begin() const {
    const int64_t image = blockIdx.x / groups, group = blockIdx.x % groups;
    return image * pixels * c + group * width;
  }
  // body(offset of an access from begin(), its channel within the group), for this thread's accesses.
  template <int n, class Body>
  __device__ void for_each(Body&& body) const {
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
      uint32_t pixel = i;
      const int64_t channel = int64_t{accesses.split(pixel)} * n;
      body(pixel * c + channel, channel);
    }
  }
};

__device__ inline float block_total(float x) {
  return static_cast<float>(block_sum(static_cast<double>(x), shared_memory<double>()));
}

template <int n, class T>
__global__ void __launch_bounds__(kMostThreads)
    group_norm_kernel(Geometry g, float epsilon, const T* x, const float* gamma, const float* beta, T* y, float* mean,
                      float* inv_std) {
  x += g.begin();
  y += g.begin();
  gamma += blockIdx.x % g.groups * g.width;
  beta += blockIdx.x % g.groups * g.width;
  float sum = 0, squares = 0;
  g.for_each<n>([&](int64_t at, int64_t) {
    const auto pack = load<T, n>(x + at);
    for (int i = 0; i < n; ++i) sum += to_float(pack.lane[i]);
  });
  const float m = block_total(sum) / g.size();
  g.for_each<n>([&](int64_t at, int64_t) {
    const auto pack = load<T, n>(x + at);
    for (int i = 0; i < n; ++i) squares += (to_float(pack.lane[i]) - m) * (to_float(pack.lane[i]) - m);
  });
  const float inverse = inverse_deviation(block_total(squares) / g.size(), epsilon);
  g.for_each<n>([&](int64_t at, int64_t channel) {
    auto pack = load<T, n>(x + at);
    for (int i = 0; i < n; ++i)
      pack.lane[i] =
          from_float<T>(normalize(to_float(pack.lane[i]), m, gamma[channel + i] * inverse, beta[channel + i]));
    store(y + at, pack);
  });
  if (threadIdx.x != 0) return;
  mean[blockIdx.x] = m;
  inv_std[blockIdx.x] = inverse;
}

template <int n, class T>
__global__ void __launch_bounds__(kMostThreads)
    group_norm_grad_kernel(Geometry g, const T* dy, const T* x, const float* gamma, const float* mean,
                           const float* inv_std, bool add, T* dx) {
  dy += g.begin();
  x += g.begin();
  dx += g.begin();
  gamma += blockIdx.x % g.groups * g.width;
  const float m = mean[blockIdx.x], inverse = inv_std[blockIdx.x];
  float sum = 0, product = 0;
  g.for_each<n>([&](int64_t at, int64_t channel) {
    const auto d = load<T, n>(dy + at), from = load<T, n>(x + at);
    for (int i = 0; i < n; ++i) {
      const float dz = gamma[channel + i] * to_float(d.lane[i]);
      sum += dz;
      product += dz * (to_float(from.lane[i]) - m);
    }
  });
  const float mean_dz = block_total(sum) / g.size();
  const float slope = inverse * inverse * (block_total(product) / g.size());
  g.for_each<n>([&](int64_t at, int64_t channel) {
    const auto d = load<T, n>(dy + at), from = load<T, n>(x + at);
    auto to = add ? load<T, n>(dx + at) : d;
    for (int i = 0; i < n; ++i) {
      const float value =
          normalize_grad(gamma[channel + i] * to_float(d.lane[i]), to_float(from.lane[i]), m, inverse, mean_dz, slope);
      to.lane[i] = from_float<T>(add ? to_float(to.lane[i]) + value : value);
    }
    store(dx + at, to);
  });
}

constexpr int kRows = 8;      // rows in flight per block of the column sums, one per warp
constexpr int kPerRow = 16;   // minimum of rows summed by each
constexpr int kChunks = 128;  // maximum of partitions of the rows

// Lanes of a warp have neighbouring channels; sums of dy * (x - m) * inv_std and of dy into [chunks, 2, c].
template <class T>
__global__ void __launch_bounds__(kRows* kWarp)
    parameter_sums_kernel(Geometry g, Divisor pixels, uint32_t rows, const T* dy, const T* x, const float* mean,
                          const float* inv_std, float* sums) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t channel = int64_t{blockIdx.x} * kWarp + lane;
  float product = 0, sum = 0;
  if (channel < g.c)
    for (uint32_t row = blockIdx.y * kRows + warp; row < rows; row += gridDim.y * kRows) {
      const int64_t which = pixels.quotient(row) * g.groups + channel / g.width, at = row * g.c + channel;
      const float d = to_float(dy[at]);
      product += d * ((to_float(x[at]) - mean[which]) * inv_std[which]);
      sum += d;
    }
  float* const scratch = shared_memory<float>();  // [2, kRows, kWarp]
  scratch[warp * kWarp + lane] = product;
  scratch[(kRows + warp) * kWarp + lane] = sum;
  __syncthreads();
  if (warp > 1 || channel >= g.c) return;
  float total = 0;
  for (int row = 0; row < kRows; ++row) total += scratch[(warp * kRows + row) * kWarp + lane];
  sums[(int64_t{blockIdx.y} * 2 + warp) * g.c + channel] = total;
}

// Second stage: sums the chunks in order. Either gradient may be null.
__global__ void __launch_bounds__(kMostThreads)
    parameter_grad_kernel(int64_t c, int chunks, const float* sums, bool add_dgamma, bool add_dbeta, float* dgamma,
                          float* dbeta) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= 2 * c) return;
  float* const to = i < c ? dgamma : dbeta;
  if (!to) return;
  float sum = 0;
  for (int chunk = 0; chunk < chunks; ++chunk) sum += sums[chunk * 2 * c + i];
  float& element = to[i % c];
  element = (i < c ? add_dgamma : add_dbeta) ? element + sum : sum;
}

// Channels per group.
int64_t width_of(const GroupNormSaved& saved) { return saved.x.dim(2) / saved.mean.dim(1); }

// One block per group: at most one thread per access, in whole warps.
LaunchShape shape_of(const GroupNormSaved& saved, uint32_t accesses) {
  unsigned threads = kWarp;
  while (threads < kMostThreads && threads < accesses) threads *= 2;
  return {static_cast<unsigned>(saved.mean.count()), threads, threads / kWarp * sizeof(double)};
}

}  // namespace

void group_norm(Context& context, const GroupNormSaved& saved, const Tensor& beta, float epsilon, const Tensor& y) {
  dispatch_lanes("group_norm", saved.x.dtype(), width_of(saved), {saved.x.raw(), y.raw()},
                 [&]<class T, int n>(T, std::integral_constant<int, n>) {
                   const Geometry g(saved, n);
                   launch(context, group_norm_kernel<n, T>, shape_of(saved, g.count), g, epsilon, saved.x.data<T>(),
                          saved.gamma.data<float>(), beta.data<float>(), y.data<T>(), saved.mean.data<float>(),
                          saved.inv_std.data<float>());
                 });
}

void group_norm_grad(Context& context, const Tensor& dy, const GroupNormSaved& saved, const Tensor& dx, bool add) {
  dispatch_lanes("group_norm_grad", saved.x.dtype(), width_of(saved), {saved.x.raw(), dy.raw(), dx.raw()},
                 [&]<class T, int n>(T, std::integral_constant<int, n>) {
                   const Geometry g(saved, n);
                   launch(context, group_norm_grad_kernel<n, T>, shape_of(saved, g.count), g, dy.data<T>(),
                          saved.x.data<T>(), saved.gamma.data<float>(), saved.mean.data<float>(),
                          saved.inv_std.data<float>(), add, dx.data<T>());
                 });
}

void group_norm_parameter_grad(Context& context, const Tensor& dy, const GroupNormSaved& saved,
                               const GroupNormParameterGrads& grads) {
  const int64_t c = saved.x.dim(2), rows = saved.x.dim(0) * saved.x.dim(1);
  DT_CHECK(rows < int64_t{1} << 31, "group_norm: ", rows, " pixels; expected fewer than 2^31");
  const auto chunks = static_cast<unsigned>(std::clamp<int64_t>(rows / (kRows * kPerRow), 1, kChunks));
  const Tensor sums = context.empty({chunks, 2, c});
  dispatch_floating(dy.dtype(), "group_norm_parameter_grad", [&]<class T>(T) {
    const LaunchShape shape{
        {static_cast<unsigned>((c + kWarp - 1) / kWarp), chunks}, kRows * kWarp, 2 * kRows * kWarp * sizeof(float)};
    launch(context, parameter_sums_kernel<T>, shape, Geometry(saved, 1), Divisor(saved.x.dim(1)),
           static_cast<uint32_t>(rows), dy.data<T>(), saved.x.data<T>(), saved.mean.data<float>(),
           saved.inv_std.data<float>(), sums.data<float>());
  });
  const auto data = [](const Tensor& x) { return x ? x.data<float>() : nullptr; };
  launch(context, parameter_grad_kernel,
         {static_cast<unsigned>((2 * c + kMostThreads - 1) / kMostThreads), kMostThreads}, c, static_cast<int>(chunks),
         sums.data<float>(), grads.add_dgamma, grads.add_dbeta, data(grads.dgamma), data(grads.dbeta));
}

}  // namespace dtrain::cuda
