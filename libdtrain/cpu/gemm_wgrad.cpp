#include "libdtrain/cpu/gemm_wgrad.h"

#include <algorithm>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/parallel.h"
#include "libdtrain/cpu/simd.h"

namespace dtrain::cpu {
namespace {

// Pixels per pass: a panel of so many stays in the first-level cache.
constexpr int64_t kDepth = 256;
// Filters per piece of work: so many panels of dy stay in the second-level cache.
constexpr int64_t kFilters = 64;
// Floats of a panel [kDepth][width]; the odd line keeps the panels that a pixel goes into out of one cache set.
constexpr int64_t panel_step(int64_t width) { return kDepth * width + 16; }

// Products per pixel from which the packing pays.
constexpr int64_t kLeastProducts = 40000;

// One pixel's channels into row `row` of c / width panels.
void pack_pixel(const float* from, int64_t c, int64_t width, int64_t row, float* panels) {
  float* to = panels + row * width;
  for (int64_t i = 0; i < c; i += width, to += panel_step(width))
    for (int64_t j = 0; j < width; j += 8) store8(to + j, load8(from + i + j));
}

}  // namespace

bool gemm_wgrad_supports(const Context& context, const ConvShape& o) {
  const int64_t width = context.kernels().product.columns;
  return o.groups == 1 && o.c % width == 0 && o.k % width == 0;
}

bool enough_products(const ConvShape& o) { return o.k * o.r * o.s * o.c >= kLeastProducts; }

bool gemm_wgrad_pays(const Context& context, const ConvShape& o) {
  return gemm_wgrad_supports(context, o) && enough_products(o) && (o.r * o.s > 1 || context.isa() == CpuIsa::avx2);
}

// Pixels are rows of dy [pixels, k] and of the windows of x [pixels, r s c]: dw [k, r s c] is the product of the one,
// transposed, and the other. A pass packs kDepth pixels of both and adds their share to the sums, which lie in the
// order in which they are visited.
void gemm_wgrad(Context& context, const ConvShape& o, const float* x, const float* dy, float* dw, bool add,
                const std::vector<int64_t>* chosen) {
  const ProductKernels& product = context.kernels().product;
  const int64_t width = product.columns, taps = o.r * o.s, columns = taps * o.c;
  const int64_t pixels = chosen ? static_cast<int64_t>(chosen->size()) : o.n * o.p * o.q;
  const int64_t panels = columns / width, items = (o.k + kFilters - 1) / kFilters * panels;
  const int64_t step = panel_step(width), piece = kFilters * width;
  const Scratch<float> windows(context, panels * step), gradients(context, o.k / width * step);
  const Scratch<float> sums(context, items * piece);  // [k / kFilters][panel][kFilters][width]
  const Tensor zero_pixel = context.zeros({o.c});
  const float* const zeros = zero_pixel.data<float>();
#pragma omp parallel num_threads(context.threads())
  {
    for (int64_t first = 0; first < pixels; first += kDepth) {
      const int64_t depth = std::min(kDepth, pixels - first);
#pragma omp for schedule(static)
      for (int64_t row = 0; row < depth; ++row) {
        const int64_t pixel = chosen ? (*chosen)[static_cast<size_t>(first + row)] : first + row;
        const int64_t image = pixel / (o.p * o.q), p = pixel / o.q % o.p, q = pixel % o.q;
        pack_pixel(dy + pixel * o.k, o.k, width, row, gradients.data());
        for (int64_t tap = 0; tap < taps; ++tap) {
          const int64_t h = p * o.stride_h + tap / o.s * o.dilation_h - o.pad_top;
          const int64_t w = q * o.stride_w + tap % o.s * o.dilation_w - o.pad_left;
          const bool inside = h >= 0 && h < o.h && w >= 0 && w < o.w;
          pack_pixel(inside ? x + ((image * o.h + h) * o.w + w) * o.c : zeros, o.c, width, row,
                     windows.data() + tap * (o.c / width) * step);
        }
      }
#pragma omp for schedule(static)
      for (int64_t item = 0; item < items; ++item) {
        const int64_t from = item / panels * kFilters, panel = item % panels;
        for (int64_t k = from; k < std::min(from + kFilters, o.k); k += width)
          product.panel_by_panel(depth, gradients.data() + k / width * step, windows.data() + panel * step,
                                 sums.data() + item * piece + (k - from) * width, width, first > 0);
      }
    }
#pragma omp for schedule(static)
    for (int64_t k = 0; k < o.k; ++k)
      for (int64_t i = 0; i < columns; i += 8) {
        const int64_t item = k / kFilters * panels + i / width;
        const float* const from = sums.data() + item * piece + k % kFilters * width + i % width;
        const Float8 sum = pixels > 0 ? load8(from) : Float8{};
        float* const to = dw + k * columns + i;
        store8(to, add ? load8(to) + sum : sum);
      }
  }
}

}  // namespace dtrain::cpu
