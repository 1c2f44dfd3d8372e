#include "libdtrain/cpu/few_pixels.h"

#include <algorithm>
#include <bit>

#include "libdtrain/cpu/gathered_conv.h"
#include "libdtrain/cpu/gemm_wgrad.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/parallel.h"
#include "libdtrain/cpu/simd.h"

namespace dtrain::cpu {
namespace {

// One pixel in so many is few: Winograd's algorithm is at best four times as fast as a product over the same pixels.
constexpr int64_t kShare = 8;
// Pixels that are looked at first: where many of them differ from zero nobody looks at all.
constexpr int64_t kProbes = 64;
// Rows of products at a time.
constexpr int64_t kRows = 256;

// All bits but the sign are looked at together, which compilers turn into vectors, as they do not with comparisons.
template <class T>
bool is_zero(const T* row, int64_t count) {
  uint32_t bits = 0;
  for (int64_t i = 0; i < count; ++i) bits |= std::bit_cast<uint32_t>(static_cast<float>(row[i])) << 1;
  return bits == 0;
}

template <class T>
bool probably_few(int64_t pixels, int64_t k, const T* dy) {
  int64_t found = 0;
  for (int64_t i = 0; i < kProbes; ++i) found += !is_zero(dy + pixels * i / kProbes * k, k);
  return found <= 2 * kProbes / kShare;
}

// Adds products [count][width], of a tap and the channels from `channel` on, to the pixels of dx that the tap reads.
void scatter(const ConvShape& o, const int64_t* pixels, int64_t count, int64_t tap, int64_t channel, int64_t width,
             const float* products, float* dx) {
  for (int64_t row = 0; row < count; ++row, products += width) {
    const int64_t image = pixels[row] / (o.p * o.q), p = pixels[row] / o.q % o.p, q = pixels[row] % o.q;
    const int64_t h = p * o.stride_h + tap / o.s * o.dilation_h - o.pad_top;
    const int64_t w = q * o.stride_w + tap % o.s * o.dilation_w - o.pad_left;
    if (h < 0 || h >= o.h || w < 0 || w >= o.w) continue;
    float* const to = dx + ((image * o.h + h) * o.w + w) * o.c + channel;
    for (int64_t i = 0; i < width; i += 8) store8(to + i, load8(to + i) + load8(products + i));
  }
}

}  // namespace

template <class T>
std::optional<std::vector<int64_t>> few_pixels(const Context& context, const ConvShape& o, const T* dy) {
  const int64_t pixels = o.n * o.p * o.q;
  if (!gemm_wgrad_supports(context, o) || !enough_products(o) || pixels < kProbes || !probably_few(pixels, o.k, dy))
    return {};
  std::vector<int64_t> found;
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    if (is_zero(dy + pixel * o.k, o.k)) continue;
    if (static_cast<int64_t>(found.size()) == pixels / kShare) return {};
    found.push_back(pixel);
  }
  return found;
}

template std::optional<std::vector<int64_t>> few_pixels(const Context&, const ConvShape&, const float*);
template std::optional<std::vector<int64_t>> few_pixels(const Context&, const ConvShape&, const Bf16*);

void few_pixels_dgrad(Context& context, const ConvShape& o, const std::vector<int64_t>& pixels, const float* dy,
                      const float* w, float* dx, bool add) {
  const ProductKernels& product = context.kernels().product;
  const int64_t width = product.columns, taps = o.r * o.s, columns = taps * o.c, stride = o.k + width;
  const Scratch<float> panels(context, columns * o.k), gathered(context, kRows * stride);
  const Scratch<float> products(context, context.threads() * kRows * width);
  pack_columns(context, o.k, columns, w, panels.data());
  if (!add)
    parallel_ranges(o.n * o.h * o.w * o.c, [&](int64_t begin, int64_t end) { std::fill(dx + begin, dx + end, 0.0f); });
  const auto total = static_cast<int64_t>(pixels.size());
  for (int64_t first = 0; first < total; first += kRows) {
    const int64_t rows = std::min(kRows, total - first);
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(dy + pixels[static_cast<size_t>(first + row)] * o.k, o.k, gathered.data() + row * stride);
      // A thread has all taps of its channels, so that no two add to one element.
#pragma omp parallel for schedule(static) num_threads(context.threads())
    for (int64_t channel = 0; channel < o.c; channel += width) {
      float* const mine = products.data() + omp_get_thread_num() * kRows * width;
      for (int64_t tap = 0; tap < taps; ++tap) {
        product.rows_by_panels({.rows = rows,
                                .k = o.k,
                                .a = gathered.data(),
                                .a_stride = stride,
                                .b = panels.data() + (tap * o.c + channel) * o.k,
                                .b_stride = width,
                                .y = mine,
                                .y_stride = width});
        scatter(o, pixels.data() + first, rows, tap, channel, width, mine, dx);
      }
    }
  }
}

}  // namespace dtrain::cpu
