#include "libdtrain/cpu/gemm_wgrad.h"

#include <dnnl.hpp>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/gemm_tile.h"
#include "libdtrain/cpu/parallel.h"
#include "libdtrain/cpu/simd.h"

namespace dtrain::cpu {
namespace {

// Pixels per pass: a panel of so many stays in the first-level cache.
constexpr int64_t kDepth = 256;
// Filters per piece of work: so many panels of dy stay in the second-level cache.
constexpr int64_t kFilters = 64;
// Floats of a panel [kDepth][16]; the odd line keeps the panels that a pixel goes into out of one cache set.
constexpr int64_t kPanel = kDepth * kTileColumns + 16;
constexpr int64_t kPiece = kFilters * kTileColumns;

// Products per pixel from which the packing pays.
constexpr int64_t kLeastProducts = 40000;

// One pixel's channels into row `row` of c / 16 panels.
void pack_pixel(const float* from, int64_t c, int64_t row, float* panels) {
  float* to = panels + row * kTileColumns;
  for (int64_t i = 0; i < c; i += kTileColumns, to += kPanel) {
    store8(to, load8(from + i));
    store8(to + 8, load8(from + i + 8));
  }
}

}  // namespace

bool gemm_wgrad_supports(const ConvShape& o) {
  return o.groups == 1 && o.c % kTileColumns == 0 && o.k % kTileColumns == 0;
}

bool enough_products(const ConvShape& o) { return o.k * o.r * o.s * o.c >= kLeastProducts; }

bool gemm_wgrad_pays(const ConvShape& o) {
  const bool wide = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core;
  return gemm_wgrad_supports(o) && enough_products(o) && (o.r * o.s > 1 || !wide);
}

// Pixels are rows of dy [pixels, k] and of the windows of x [pixels, r s c]: dw [k, r s c] is the product of the one,
// transposed, and the other. A pass packs kDepth pixels of both and adds their share to the sums, which lie in the
// order in which they are visited.
void gemm_wgrad(Context& context, const ConvShape& o, const float* x, const float* dy, float* dw, bool add,
                const std::vector<int64_t>* chosen) {
  const int64_t taps = o.r * o.s, columns = taps * o.c;
  const int64_t pixels = chosen ? static_cast<int64_t>(chosen->size()) : o.n * o.p * o.q;
  const int64_t panels = columns / kTileColumns, items = (o.k + kFilters - 1) / kFilters * panels;
  const Scratch<float> windows(context, panels * kPanel), gradients(context, o.k / kTileColumns * kPanel);
  const Scratch<float> sums(context, items * kPiece);  // [k / kFilters][panel][kFilters][16]
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
        pack_pixel(dy + pixel * o.k, o.k, row, gradients.data());
        for (int64_t tap = 0; tap < taps; ++tap) {
          const int64_t h = p * o.stride_h + tap / o.s * o.dilation_h - o.pad_top;
          const int64_t w = q * o.stride_w + tap % o.s * o.dilation_w - o.pad_left;
          const bool inside = h >= 0 && h < o.h && w >= 0 && w < o.w;
          pack_pixel(inside ? x + ((image * o.h + h) * o.w + w) * o.c : zeros, o.c, row,
                     windows.data() + tap * (o.c / kTileColumns) * kPanel);
        }
      }
#pragma omp for schedule(static)
      for (int64_t item = 0; item < items; ++item) {
        const int64_t from = item / panels * kFilters, panel = item % panels;
        for (int64_t k = from; k < std::min(from + kFilters, o.k); k += kTileColumns)
          gemm_panels(depth, gradients.data() + k / kTileColumns * kPanel, windows.data() + panel * kPanel,
                      sums.data() + item * kPiece + (k - from) * kTileColumns, kTileColumns, first > 0);
      }
    }
#pragma omp for schedule(static)
    for (int64_t k = 0; k < o.k; ++k)
      for (int64_t i = 0; i < columns; i += 8) {
        const int64_t item = k / kFilters * panels + i / kTileColumns;
        const float* const from = sums.data() + item * kPiece + k % kFilters * kTileColumns + i % kTileColumns;
        const Float8 sum = pixels > 0 ? load8(from) : Float8{};
        float* const to = dw + k * columns + i;
        store8(to, add ? load8(to) + sum : sum);
      }
  }
}

}  // namespace dtrain::cpu
