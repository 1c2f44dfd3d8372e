// The phases of a convolution by Winograd's algorithm, for any part of its tiles: transform of the weights, transform
// of input tiles, a GEMM for each of 36 points, transform of the products with the epilogue.
#pragma once

#include <algorithm>
#include <vector>

#include "dtrain/core/context.h"
#include "libdtrain/cpu/conv/winograd_tiles.h"
#include "libdtrain/cpu/gemm/prefetch_schedule.h"
#include "libdtrain/cpu/gemm/statistics.h"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu {

// Depth of a GEMM: a panel of this depth stays in the first-level cache. All panels of a GEMM do where they are no
// deeper than kWinogradSmall.
inline constexpr int64_t kWinogradDepth = 256, kWinogradSmall = 64;
// Bytes of all panels from which they come from the shared cache or from memory and are prefetched. Prefetching fewer
// costs more than it gains: a tenth at 28x28x128.
inline constexpr int64_t kPanelBytesBeyondL2 = int64_t{4} << 20;
// Depth of the panels of all points that a thread transforms and then multiplies by: they stay in the second-level
// cache.
inline constexpr int64_t kFusedTransformDepth = 128;

// Transforms weights to panels [point][outer / width][inner][width]. `w` describes the weights of the first outer and
// inner channels.
template <class T>
struct WeightTransform {
  const Kernels& kernels;
  WinogradFilters<T> w;

  // `count` inner channels of the panel of the outer channels from `outer` on.
  void transform(int64_t outer, int64_t inner, int64_t count, float* to, int64_t point_step) const {
    WinogradFilters<T> part = w;
    part.point_step = point_step;
    for (int64_t i = 0; i < count; i += kernels.winograd.lanes) {
      part.w = w.w + outer * w.outer_step + (inner + i) * w.inner_step;
      part.to = to + i * kernels.gemm.columns;
      kernels.winograd.of<T>().filters(part);
    }
  }
};

template <class T>
Tensor transform_weights(Context& context, const WeightTransform<T>& weights, int64_t inner, int64_t outer) {
  const int64_t point_step = pad_by_cache_line(inner * outer), width = context.kernels().gemm.columns,
                lanes = context.kernels().winograd.lanes;
  const Tensor panels = context.empty({kWinogradPoints * point_step});
#pragma omp parallel for schedule(static) num_threads(context.threads())
  for (int64_t item = 0; item < outer / width * inner; item += lanes)
    weights.transform(item / inner * width, item % inner, lanes, panels.data<float>() + item * width, point_step);
  return panels;
}

// The phases of y = x * w: transform of input tiles, a GEMM for each of 36 points, transform of the products.
template <class T>
struct WinogradConv {
  const Kernels& kernels;
  WinogradTiles tiles;
  WinogradSource<T> x;
  Output<T> y;
  const T* zeros;  // a pixel of x
  bool by_tiles = tiles.outweigh_weights(x.c, y.c, 1);
  InputLayout inputs_at =
      by_tiles ? InputLayout::tile_by_tile(x.c) : InputLayout::gemm_by_gemm(tiles.count, x.c, kFusedTransformDepth);

  // Scratch memory of `count` tiles between the phases.
  int64_t input_floats(int64_t count) const { return inputs_at.floats(count, x.c); }
  int64_t scratch_floats(int64_t count) const { return input_floats(count) + count * tile_stride(y.c); }

  // Transforms tile `t`, which is number `place` of `inputs`.
  void transform(int64_t t, int64_t place, float* inputs) const {
    const auto [tile, point, run, run_step] = inputs_at;
    kernels.winograd.of<T>().input_tile(x.window(tiles, t, zeros), x.c, {inputs + place * tile, point, run, run_step});
  }
  // Writes tile `t`, which belongs to `chunk`.
  void finish(int64_t chunk, int64_t t, const float* products) const {
    y.write(chunk, kernels.winograd.of<T>(), products, y.pixels(tiles, t));
  }
  // GEMM of `count` tiles by `columns` outer channels at one point, over `depths` inner channels from `depth` on, where
  // the panels begin.
  void multiply(int64_t count, int64_t point, int64_t outer, int64_t columns, int64_t depth, int64_t depths,
                const float* inputs, const float* panel, int64_t panel_step, float* products,
                const PrefetchRange& prefetch) const {
    kernels.gemm.strided({.rows = count,
                          .k = depths,
                          .a = inputs + inputs_at.at(0, point, depth),
                          .a_stride = inputs_at.tile,
                          .b = panel,
                          .b_stride = kernels.gemm.columns,
                          .y = products + point * y.c + outer,
                          .y_stride = tile_stride(y.c),
                          .add = depth > 0,
                          .panels = columns / kernels.gemm.columns,
                          .panel_step = panel_step,
                          .prefetch = prefetch});
  }
  // Outer channels of a GEMM: several panels where they are small, and where one leaves no room for tiles in the
  // first-level cache, so that the tiles are read less often from the second-level one.
  int64_t columns() const {
    const int64_t one = kernels.gemm.columns, most = one * kernels.gemm.panels;
    return (x.c <= kWinogradSmall || x.c >= kWinogradDepth) && y.c % most == 0 ? most : one;
  }
  bool panels_exceed_l2() const {
    return kWinogradPoints * x.c * y.c * static_cast<int64_t>(sizeof(float)) >= kPanelBytesBeyondL2;
  }
  // The same over all inner channels; `panels`: of all points and outer channels. Prefetches the next panels if they
  // are far, else `next_range`.
  void multiply(int64_t count, int64_t point, int64_t outer, const float* inputs, const float* panels, float* products,
                const PrefetchRange& next_range) const {
    const int64_t width = kernels.gemm.columns, wide = columns();
    const float* const panel = panels + point * pad_by_cache_line(x.c * y.c) + outer * x.c;
    constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
    const bool last = outer + wide == y.c, more = !last || point + 1 < kWinogradPoints;
    const float* const next = last ? panels + (point + 1) * pad_by_cache_line(x.c * y.c) : panel + wide * x.c;
    const int64_t most = std::min(kWinogradDepth, inputs_at.run);
    for (int64_t depth = 0; depth < x.c; depth += most) {
      const int64_t depths = std::min(most, x.c - depth);
      const PrefetchRange panels_after{next + depth * wide, more ? depths * wide * kFloat : 0};
      multiply(count, point, outer, wide, depth, depths, inputs, panel + depth * width, x.c * width, products,
               panels_exceed_l2() ? panels_after
               : depth == 0       ? next_range
                                  : PrefetchRange{});
    }
  }
  // The inputs of the next point, for a GEMM by panels that were just transformed.
  PrefetchRange inputs_after(int64_t point, int64_t depth, const float* inputs) const {
    const int64_t floats = point + 1 < kWinogradPoints ? tiles.count * inputs_at.tile : 0;
    return {inputs + inputs_at.at(0, point + 1, depth), floats * static_cast<int64_t>(sizeof(float))};
  }
  // Prefetched during the GEMMs of tiles [first, first + count): the images under the next tiles, up to `end`, and the
  // output under these.
  TwoRangeSchedule prefetch_of(int64_t first, int64_t count, int64_t end) const {
    const int64_t half = kWinogradPoints / 2 * (y.c / columns());
    return {PrefetchSchedule(x.rows_of(tiles, first + count, end), half),
            PrefetchSchedule(tiles.rows_of(first, first + count, y.data, y.h, y.w * y.c), half), half};
  }
};

}  // namespace dtrain::cpu
