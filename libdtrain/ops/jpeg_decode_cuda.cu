// Resampling of decoded images. Horizontal sums are recomputed for each row: with the few taps of typical photographs
// this is cheaper than storing them.
#include "dtrain/core/encoded_image.h"
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/jpeg_decode_kernels.cuh"

namespace dtrain::cuda {
namespace {

constexpr int kBlockPixels = 128;

struct Floats {
  using Weight = float;
  using Sample = float;
  static constexpr float kStart = 0;
  static __device__ float finish(float sum) { return sum; }
};

struct Bytes {
  using Weight = uint32_t;
  using Sample = uint8_t;
  static constexpr uint32_t kStart = 1u << (kFilterBits - 1);
  static __device__ uint8_t finish(uint32_t sum) { return static_cast<uint8_t>(sum >> kFilterBits); }
};

// One thread per pixel of sample blockIdx.y.
template <class Kind>
__global__ void __launch_bounds__(kBlockPixels) resample_kernel(const ResamplePlan* plans, const int32_t* tables,
                                                                int height, int width, typename Kind::Sample* pixels) {
  using Weight = typename Kind::Weight;
  const int pixel = static_cast<int>(blockIdx.x * kBlockPixels + threadIdx.x);
  if (pixel >= height * width) return;
  const ResamplePlan plan = plans[blockIdx.y];
  const int y = pixel / width, x = pixel - y * width;
  const int32_t *across = tables + plan.x, *down = tables + plan.y;
  const auto* weights_x = reinterpret_cast<const Weight*>(across + width) + int64_t{x} * plan.taps_x;
  const auto* weights_y = reinterpret_cast<const Weight*>(down + height) + int64_t{y} * plan.taps_y;
  const uint8_t* source = plan.image + down[y] * plan.pitch + 3 * int64_t{across[x]};
  Weight sums[3] = {Kind::kStart, Kind::kStart, Kind::kStart};
  for (int j = 0; j < plan.taps_y; ++j, source += plan.pitch) {
    Weight row[3] = {Kind::kStart, Kind::kStart, Kind::kStart};
    for (int i = 0; i < plan.taps_x; ++i)
      for (int c = 0; c < 3; ++c) row[c] += weights_x[i] * static_cast<Weight>(source[3 * i + c]);
    for (int c = 0; c < 3; ++c) sums[c] += weights_y[j] * static_cast<Weight>(Kind::finish(row[c]));
  }
  typename Kind::Sample* out = pixels + 3 * (plan.row * height * width + pixel);
  for (int c = 0; c < 3; ++c) out[c] = Kind::finish(sums[c]);
}

}  // namespace

void resample(Context& context, const ResamplePlan* plans, int64_t count, const int32_t* tables, const Tensor& pixels,
              cudaStream_t stream) {
  if (count == 0) return;
  const auto height = static_cast<int>(pixels.dim(1)), width = static_cast<int>(pixels.dim(2));
  const dim3 grid((static_cast<unsigned>(height * width) + kBlockPixels - 1) / kBlockPixels,
                  static_cast<unsigned>(count));
  const LaunchShape shape{.grid = grid, .block = kBlockPixels, .stream = stream};
  if (pixels.dtype() == DType::u8)
    launch(context, resample_kernel<Bytes>, shape, plans, tables, height, width, pixels.data<uint8_t>());
  else
    launch(context, resample_kernel<Floats>, shape, plans, tables, height, width, pixels.data<float>());
}

}  // namespace dtrain::cuda
