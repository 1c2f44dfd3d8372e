#include "dtrain/ops/mix_pixels.h"

#include <algorithm>
#include <vector>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/mix_pixels_kernels.h"
#include "libdtrain/ops/mix_pixels_math.h"

namespace dtrain {
namespace {

void require(const Tensor& x, const char* what, const Shape& shape, DType dtype) {
  DT_CHECK(x.shape() == shape && x.dtype() == dtype, "mix_pixels: ", what, " ", x.shape(), " of type ", x.dtype(),
           ", expected ", shape, " of ", dtype);
}

void check(const Tensor& x, const PixelNormalization& options, const PixelMixing& mixing) {
  DT_CHECK(x.shape().rank() == 4 && x.dim(3) == 3, "mix_pixels: expected [n, h, w, 3], found ", x.shape());
  DT_CHECK(x.dtype() == DType::u8 || x.dtype() == DType::f32, "mix_pixels: pixels of type ", x.dtype(),
           "; expected u8 or f32");
  DT_CHECK(options.channels >= 3, "mix_pixels: ", options.channels, " output channels; expected 3 or more");
  const int64_t n = x.dim(0);
  if (mixing.erased) require(mixing.erased, "erased", {n, 6}, DType::i32);
  DT_CHECK(mixing.partners.defined() == mixing.weights.defined() && mixing.partners.defined() == mixing.boxes.defined(),
           "mix_pixels: partners, weights and boxes go together");
  if (!mixing.partners) return;
  require(mixing.partners, "partners", {n}, DType::i32);
  require(mixing.weights, "weights", {n}, DType::f32);
  require(mixing.boxes, "boxes", {n, 4}, DType::i32);
}

}  // namespace

Tensor mix_pixels(Context& context, const Tensor& x, const PixelNormalization& options, const PixelMixing& mixing) {
  check(x, options, mixing);
  const Tensor y = context.empty({x.dim(0), x.dim(1), x.dim(2), options.channels}, options.dtype);
  if (y.count() > 0) DT_DISPATCH(context, mix_pixels)(x, options, mixing, y);
  return y;
}

namespace {

// Reads lines of pixels, normalised and erased.
template <class Pixel>
struct Lines {
  const Pixel* x;
  int64_t height, width;
  const PixelNormalization& options;
  const PixelMixing& mixing;

  void write(int64_t row, int64_t line, float* out) const {
    const Pixel* from = x + (row * height + line) * width * 3;
    const int64_t channels = options.channels;
    const float m0 = options.mean[0], m1 = options.mean[1], m2 = options.mean[2];
    const float s0 = options.scale[0], s1 = options.scale[1], s2 = options.scale[2];
    if (channels > 3) std::fill(out, out + width * channels, 0.0f);
    for (int64_t i = 0; i < width; ++i) {
      out[channels * i] = normalize_pixel(static_cast<float>(from[3 * i]), m0, s0);
      out[channels * i + 1] = normalize_pixel(static_cast<float>(from[3 * i + 1]), m1, s1);
      out[channels * i + 2] = normalize_pixel(static_cast<float>(from[3 * i + 2]), m2, s2);
    }
    if (!mixing.erased) return;
    const int32_t* const window = mixing.erased.data<int32_t>() + 6 * row;
    if (line < window[1] || line >= window[3]) return;
    for (int64_t i = std::max(window[0], 0); i < std::min<int64_t>(window[2], width); ++i)
      erase_pixel(options, mixing.value, window, line * width + i, out + channels * i);
  }

  // `other`: scratch for one line.
  void write_mixed(int64_t rows, int64_t row, int64_t line, float* out, float* other) const {
    write(row, line, out);
    if (!mixing.partners) return;
    const int64_t partner = mixing.partners.data<int32_t>()[row];
    const int32_t* const box = mixing.boxes.data<int32_t>() + 4 * row;
    if (partner < 0 || partner >= rows || line < box[1] || line >= box[3]) return;
    const float weight = mixing.weights.data<float>()[row];
    const int64_t begin = std::max(box[0], 0), end = std::min<int64_t>(box[2], width);
    write(partner, line, other);
    for (int64_t i = begin * options.channels; i < end * options.channels; ++i)
      out[i] = mix_pixel(out[i], other[i], weight);
  }
};

template <class Pixel>
void mix(const Tensor& x, const PixelNormalization& options, const PixelMixing& mixing, const Tensor& y) {
  const int64_t rows = x.dim(0), height = x.dim(1), width = x.dim(2), length = width * options.channels;
  const Lines<Pixel> lines{x.data<Pixel>(), height, width, options, mixing};
  cpu::parallel_ranges(
      rows * height,
      [&](int64_t begin, int64_t end) {
        std::vector<float> other(static_cast<size_t>(length));
        for (int64_t i = begin; i < end; ++i)
          lines.write_mixed(rows, i / height, i % height, y.data<float>() + i * length, other.data());
      },
      2 * length);
}

}  // namespace

void cpu::mix_pixels(Context&, const Tensor& x, const PixelNormalization& options, const PixelMixing& mixing,
                     const Tensor& y) {
  if (x.dtype() == DType::u8)
    mix<uint8_t>(x, options, mixing, y);
  else
    mix<float>(x, options, mixing, y);
}

}  // namespace dtrain
