// CUDA kernel of mix_pixels: one thread per pixel, which also reads the partner's pixel.
#include "dtrain/ops/mix_pixels.h"
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/mix_pixels_kernels.h"
#include "libdtrain/ops/mix_pixels_math.h"

namespace dtrain::cuda {
namespace {

// Kernel arguments from PixelMixing; null where undefined.
struct Rules {
  const int32_t *erased, *partners, *boxes;
  const float* weights;
  Erased value;
  int64_t rows, height, width;
};

template <class Pixel>
__device__ void prepare(const Pixel* images, const PixelNormalization& options, const Rules& rules, int64_t row,
                        int64_t pixel, float* rgb) {
  const int32_t* const window = rules.erased ? rules.erased + 6 * row : nullptr;
  if (window && is_inside(window, pixel % rules.width, pixel / rules.width))
    return erase_pixel(options, rules.value, window, pixel, rgb);
  const Pixel* const from = images + (row * rules.height * rules.width + pixel) * 3;
  for (int c = 0; c < 3; ++c) rgb[c] = normalize_pixel(to_float(from[c]), options.mean[c], options.scale[c]);
}

template <class Pixel, class T>
__global__ void __launch_bounds__(kThreads)
    mix_kernel(PixelNormalization options, Rules rules, const Pixel* images, T* y) {
  const int64_t size = rules.height * rules.width, count = rules.rows * size;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += int64_t{gridDim.x} * kThreads) {
    const int64_t row = i / size, pixel = i % size;
    float own[3];
    prepare(images, options, rules, row, pixel, own);
    const int64_t partner = rules.partners ? rules.partners[row] : -1;
    if (partner >= 0 && partner < rules.rows &&
        is_inside(rules.boxes + 4 * row, pixel % rules.width, pixel / rules.width)) {
      float other[3];
      prepare(images, options, rules, partner, pixel, other);
      for (int c = 0; c < 3; ++c) own[c] = mix_pixel(own[c], other[c], rules.weights[row]);
    }
    T* const to = y + i * options.channels;
    for (int c = 0; c < options.channels; ++c) to[c] = from_float<T>(c < 3 ? own[c] : 0.0f);
  }
}

const int32_t* words(const Tensor& x) { return x ? x.data<int32_t>() : nullptr; }

}  // namespace

void mix_pixels(Context& context, const Tensor& x, const PixelNormalization& options, const PixelMixing& mixing,
                const Tensor& y) {
  const Rules rules{.erased = words(mixing.erased),
                    .partners = words(mixing.partners),
                    .boxes = words(mixing.boxes),
                    .weights = mixing.weights ? mixing.weights.data<float>() : nullptr,
                    .value = mixing.value,
                    .rows = x.dim(0),
                    .height = x.dim(1),
                    .width = x.dim(2)};
  const LaunchShape shape{blocks_for(context, y.count() / options.channels, kThreads), kThreads};
  dispatch_floating(y.dtype(), "mix_pixels", [&]<class T>(T) {
    if (x.dtype() == DType::u8)
      launch(context, mix_kernel<uint8_t, T>, shape, options, rules, x.data<uint8_t>(), y.data<T>());
    else
      launch(context, mix_kernel<float, T>, shape, options, rules, x.data<float>(), y.data<T>());
  });
}

}  // namespace dtrain::cuda
