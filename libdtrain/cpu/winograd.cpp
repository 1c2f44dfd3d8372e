#include "libdtrain/cpu/winograd.h"

#include <algorithm>
#include <vector>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/parallel.h"
#include "libdtrain/cpu/result_sums.h"
#include "libdtrain/cpu/shares.h"
#include "libdtrain/cpu/winograd_tiles.h"

namespace dtrain::cpu {
namespace {

// Tiles that a core takes through all phases at once: transformed, with their products, they stay in its own cache. The
// farther the panels come from, the more tiles they have to serve.
constexpr int64_t kTilesPerCore = 24, kTilesOfFarPanels = 48;
// Inner dimension per pass: a panel of this depth stays in the first-level cache. All panels of a product do where they
// are no deeper than kSmall.
constexpr int64_t kDepth = 256, kSmall = 64;
// Bytes of all panels from which they come from the shared cache or from memory. Of fewer, those that are brought in
// early cost more than they bring: a tenth at 28x28x128.
constexpr int64_t kFarPanels = int64_t{4} << 20;
// Inner dimension of the panels of all points that a core transforms and then multiplies by: they stay in the
// second-level cache.
constexpr int64_t kFreshDepth = 128;

// The operand that is written, and what is done to each element before.
template <class T>
struct Target {
  T* data;
  int64_t h, w, c;
  EndOf<T> end;
  ResultSums* sums = nullptr;  // null: nobody wants them

  // Those pixels of tile `t` that are inside the image.
  WinogradPixels<T> pixels(const WinogradTiles& tiles, int64_t t) const {
    const auto [image, top, left] = tiles.place_of(t);
    const int64_t first = ((image * h + top) * w + left) * c;
    EndOf<T> own = end;
    if (own.residual) own.residual += first;
    return {data + first, w * c, c, std::min(kWinogradOut, h - top), std::min(kWinogradOut, w - left), own};
  }
  // As WinogradTransforms does, with the sums of a share.
  void write(int64_t share, const WinogradTransforms<T>& transforms, const float* products,
             WinogradPixels<T> to) const {
    if (sums) to.end.sums = sums->from(share, 0);
    transforms.output_tile(products, c, to);
    if (!sums) return;
    if (to.end.sums.pivot) return sums->added(share, 0, c, to.rows * to.columns);
    for (int64_t i = 0; i < to.rows; ++i)
      sums->add_rows(share, 0, c, to.columns, to.to + i * to.row_step, to.column_step);
  }
};

// The transforms of filters as panels [point][outer / width][inner][width]. `w` describes those of the first outer and
// inner channels.
template <class T>
struct FilterPanels {
  const Kernels& kernels;
  WinogradFilters<T> w;

  // `count` inner channels of the panel of the outer channels from `outer` on.
  void transform(int64_t outer, int64_t inner, int64_t count, float* to, int64_t point_step) const {
    WinogradFilters<T> part = w;
    part.point_step = point_step;
    for (int64_t i = 0; i < count; i += kernels.winograd.lanes) {
      part.w = w.w + outer * w.outer_step + (inner + i) * w.inner_step;
      part.to = to + i * kernels.product.columns;
      kernels.winograd.of<T>().filters(part);
    }
  }
};

template <class T>
Tensor transform_filters(Context& context, const FilterPanels<T>& filters, int64_t inner, int64_t outer) {
  const int64_t point_step = winograd_spread(inner * outer), width = context.kernels().product.columns,
                lanes = context.kernels().winograd.lanes;
  const Tensor panels = context.empty({kWinogradPoints * point_step});
#pragma omp parallel for schedule(static) num_threads(context.threads())
  for (int64_t item = 0; item < outer / width * inner; item += lanes)
    filters.transform(item / inner * width, item % inner, lanes, panels.data<float>() + item * width, point_step);
  return panels;
}

// Floats from one transformed tile of `channels` to the next.
constexpr int64_t tile_stride(int64_t channels) { return winograd_spread(kWinogradPoints * channels); }

// Where transformed tiles of images lie: channel c of point p of tile t at t * tile + p * point + c / run * run_step +
// c % run.
struct InputLayout {
  int64_t tile, point, run, run_step;

  // [tile][point][channel]: each tile is written, and read back, as one run of memory.
  static InputLayout tile_by_tile(int64_t channels) { return {tile_stride(channels), channels, channels, 0}; }
  // [channel / run][point][tile][run]: what a product reads is one run of memory.
  static InputLayout product_by_product(int64_t count, int64_t channels, int64_t run) {
    const int64_t point = winograd_spread(count * std::min(run, channels));
    return {std::min(run, channels), point, run, kWinogradPoints * point};
  }
  // What `count` tiles of `channels` take.
  int64_t floats(int64_t count, int64_t channels) const {
    return std::max(count * tile, (channels + run - 1) / run * run_step);
  }
  int64_t at(int64_t tile_number, int64_t point_number, int64_t channel) const {
    return tile_number * tile + point_number * point + channel / run * run_step + channel % run;
  }
};

// A convolution y = x * filters of some of the tiles.
template <class T>
struct Convolution {
  const Kernels& kernels;
  WinogradTiles tiles;
  WinogradSource<T> x;
  Target<T> y;
  const T* zeros;  // a pixel of x
  bool by_tiles = tiles.outweigh_filters(x.c, y.c, 1);
  InputLayout inputs_at =
      by_tiles ? InputLayout::tile_by_tile(x.c) : InputLayout::product_by_product(tiles.count, x.c, kFreshDepth);

  // What `count` tiles need between the phases.
  int64_t input_floats(int64_t count) const { return inputs_at.floats(count, x.c); }
  int64_t scratch_floats(int64_t count) const { return input_floats(count) + count * tile_stride(y.c); }

  // Tile `t`, which is number `place` of `inputs`.
  void transform(int64_t t, int64_t place, float* inputs) const {
    const auto [tile, point, run, run_step] = inputs_at;
    kernels.winograd.of<T>().input_tile(x.window(tiles, t, zeros), x.c, {inputs + place * tile, point, run, run_step});
  }
  // `products` are those of tile `t`, which is of share `share`.
  void finish(int64_t share, int64_t t, const float* products) const {
    y.write(share, kernels.winograd.of<T>(), products, y.pixels(tiles, t));
  }
  // The products of `count` tiles and `columns` outer channels at one point, of the inner channels from `depth` on,
  // where their panels begin, `panel_step` apart.
  void multiply(int64_t count, int64_t point, int64_t outer, int64_t columns, int64_t depth, int64_t depths,
                const float* inputs, const float* panel, int64_t panel_step, float* products,
                const Upcoming& upcoming) const {
    kernels.product.rows_by_panels({.rows = count,
                                    .k = depths,
                                    .a = inputs + inputs_at.at(0, point, depth),
                                    .a_stride = inputs_at.tile,
                                    .b = panel,
                                    .b_stride = kernels.product.columns,
                                    .y = products + point * y.c + outer,
                                    .y_stride = tile_stride(y.c),
                                    .add = depth > 0,
                                    .panels = columns / kernels.product.columns,
                                    .panel_step = panel_step,
                                    .upcoming = upcoming});
  }
  // Outer channels whose panels are taken at a time: several panels where they are small, and where one of them leaves
  // no room for tiles in the first-level cache, so that the tiles are read less often from the second one.
  int64_t columns() const {
    const int64_t one = kernels.product.columns, most = one * kernels.product.panels;
    return (x.c <= kSmall || x.c >= kDepth) && y.c % most == 0 ? most : one;
  }
  bool far_panels() const { return kWinogradPoints * x.c * y.c * static_cast<int64_t>(sizeof(float)) >= kFarPanels; }
  // The same over all inner channels; `panels`: of all points and outer channels. Where those are far the next ones
  // come meanwhile, else `soon`.
  void multiply(int64_t count, int64_t point, int64_t outer, const float* inputs, const float* panels, float* products,
                const Upcoming& soon) const {
    const int64_t width = kernels.product.columns, wide = columns();
    const float* const panel = panels + point * winograd_spread(x.c * y.c) + outer * x.c;
    constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
    const bool last = outer + wide == y.c, more = !last || point + 1 < kWinogradPoints;
    const float* const next = last ? panels + (point + 1) * winograd_spread(x.c * y.c) : panel + wide * x.c;
    const int64_t most = std::min(kDepth, inputs_at.run);
    for (int64_t depth = 0; depth < x.c; depth += most) {
      const int64_t depths = std::min(most, x.c - depth);
      const Upcoming panels_after{next + depth * wide, more ? depths * wide * kFloat : 0};
      multiply(count, point, outer, wide, depth, depths, inputs, panel + depth * width, x.c * width, products,
               far_panels() ? panels_after
               : depth == 0 ? soon
                            : Upcoming{});
    }
  }
  // Where a product by fresh panels is followed by that of the next point: the inputs of that one.
  Upcoming inputs_after(int64_t point, int64_t depth, const float* inputs) const {
    const int64_t floats = point + 1 < kWinogradPoints ? tiles.count * inputs_at.tile : 0;
    return {inputs + inputs_at.at(0, point + 1, depth), floats * static_cast<int64_t>(sizeof(float))};
  }
  // What is read and written after the products of the tiles [first, first + count): the images under the tiles up to
  // `end`, which are the next ones, and the result under their own.
  TwoPortions soon(int64_t first, int64_t count, int64_t end) const {
    const int64_t half = kWinogradPoints / 2 * (y.c / columns());
    return {Portions(x.rows_of(tiles, first + count, end), half),
            Portions(tiles.rows_of(first, first + count, y.data, y.h, y.w * y.c), half), half};
  }
};

// Where tiles outweigh filters: each core takes groups of tiles from images to images on its own, so that between the
// phases they pass through its own cache, and filters through the shared one.
template <class T>
void convolve_by_tiles(Context& context, const Convolution<T>& conv, const float* panels) {
  const int64_t count = conv.tiles.count, cores = context.threads();
  const int64_t at_once = cores * (conv.far_panels() ? kTilesOfFarPanels : kTilesPerCore);
  const int64_t rounds = (count + at_once - 1) / at_once;
  const int64_t most = (count + cores * rounds - 1) / (cores * rounds);  // equal shares
  const Scratch<float> scratch(context, cores * conv.scratch_floats(most));
  const WorkShares shares(context.threads(), (count + most - 1) / most, 1);
  parallel_shares(shares, [&](int64_t core, int64_t share, int64_t first_group, int64_t end_group) {
    float* const inputs = scratch.data() + core * conv.scratch_floats(most);
    float* const products = inputs + conv.input_floats(most);
    const int64_t end = std::min(end_group * most, count);
    for (int64_t first = first_group * most; first < end; first += most) {
      const int64_t group = std::min(most, end - first);
      for (int64_t t = 0; t < group; ++t) conv.transform(first + t, t, inputs);
      const TwoPortions soon = conv.soon(first, group, std::min(first + group + most, end));
      int64_t part = 0;
      for (int64_t point = 0; point < kWinogradPoints; ++point)
        for (int64_t outer = 0; outer < conv.y.c; outer += conv.columns(), ++part)
          conv.multiply(group, point, outer, inputs, panels, products, soon[part]);
      for (int64_t t = 0; t < group; ++t) conv.finish(share, first + t, products + t * tile_stride(conv.y.c));
    }
  });
}

// Both are called by all threads of a team, which share the work.
template <class T>
void multiply_by_panels(const Convolution<T>& conv, const float* panels, const float* inputs, float* products) {
  const int64_t width = conv.columns(), panels_per_point = conv.y.c / width;
#pragma omp for schedule(dynamic)
  for (int64_t item = 0; item < kWinogradPoints * panels_per_point; ++item)
    conv.multiply(conv.tiles.count, item / panels_per_point, item % panels_per_point * width, inputs, panels, products,
                  {});
}

// A panel is multiplied while it is in the cache of the core that made it.
template <class T>
void multiply_by_panels(const Convolution<T>& conv, const FilterPanels<T>& filters, const float* inputs,
                        float* products) {
  const int64_t width = conv.kernels.product.columns, point_step = winograd_spread(kFreshDepth * width);
  std::vector<float> panels(static_cast<size_t>(kWinogradPoints * point_step));
#pragma omp for schedule(dynamic)
  for (int64_t outer = 0; outer < conv.y.c; outer += width)
    for (int64_t depth = 0; depth < conv.x.c; depth += kFreshDepth) {
      const int64_t depths = std::min(kFreshDepth, conv.x.c - depth);
      filters.transform(outer, depth, depths, panels.data(), point_step);
      for (int64_t point = 0; point < kWinogradPoints; ++point)
        conv.multiply(conv.tiles.count, point, outer, width, depth, depths, inputs, panels.data() + point * point_step,
                      0, products, conv.inputs_after(point, depth, inputs));
    }
}

// Where filters outweigh tiles: the cores share each phase of all tiles, so that each panel of filters is read once.
// `filters`: as the overloads of multiply_by_panels take them.
template <class T, class Filters>
void convolve_by_panels(Context& context, const Convolution<T>& conv, const Filters& filters) {
  const int64_t count = conv.tiles.count;
  const Scratch<float> scratch(context, conv.scratch_floats(count));
  float* const inputs = scratch.data();
  float* const products = inputs + conv.input_floats(count);
#pragma omp parallel num_threads(context.threads())
  {
#pragma omp for schedule(static)
    for (int64_t t = 0; t < count; ++t) conv.transform(t, t, inputs);
    multiply_by_panels(conv, filters, inputs, products);
#pragma omp for schedule(static)  // what a thread adds up is always the same
    for (int64_t t = 0; t < count; ++t) conv.finish(omp_get_thread_num(), t, products + t * tile_stride(conv.y.c));
  }
}

template <class T>
void convolve(Context& context, const WinogradSource<T>& x, const Tensor& panels, int64_t n, const Target<T>& y) {
  const Tensor zero_pixel = context.zeros({x.c}, dtype_of<T>());
  const Convolution<T> conv{context.kernels(), {n, y.h, y.w}, x, y, zero_pixel.data<T>()};
  if (conv.by_tiles)
    convolve_by_tiles(context, conv, panels.data<float>());
  else
    convolve_by_panels(context, conv, panels.data<float>());
}

// Convolves with filters that are transformed for this call: on the way where each panel is used once and there are
// enough of them to occupy the cores, else before.
template <class T>
void convolve(Context& context, const WinogradSource<T>& x, const WinogradFilters<T>& w, int64_t n,
              const Target<T>& y) {
  const Tensor zero_pixel = context.zeros({x.c}, dtype_of<T>());
  const Convolution<T> conv{context.kernels(), {n, y.h, y.w}, x, y, zero_pixel.data<T>()};
  const FilterPanels<T> filters{context.kernels(), w};
  const bool many_panels = y.c / context.kernels().product.columns >= 2 * context.threads();
  if (many_panels && !conv.by_tiles) return convolve_by_panels(context, conv, filters);
  convolve(context, x, transform_filters(context, filters, x.c, y.c), n, y);
}

template <class T>
WinogradFilters<T> forward_filters(int64_t c, const T* w) {
  return {w, 9 * c, c, 1, false, nullptr, 0};
}

}  // namespace

bool winograd_supports(const Context& context, const WinogradShape& s) {
  const int64_t width = context.kernels().product.columns;
  return s.c % width == 0 && s.k % width == 0 && s.c > 0 && s.k > 0 && s.pad_top <= 2 && s.pad_left <= 2;
}

bool winograd_pays(const Context& context, const WinogradShape& s, int64_t least_tiles) {
  const int64_t tiles = ((s.p + kWinogradOut - 1) / kWinogradOut) * ((s.q + kWinogradOut - 1) / kWinogradOut);
  return winograd_supports(context, s) && s.c * s.k >= 2048 && 2 * s.p * s.q >= kWinogradOut * kWinogradOut * tiles &&
         s.n * tiles >= least_tiles;
}

std::optional<WinogradShape> winograd_of(const Context& context, const ConvShape& o, int64_t least_tiles) {
  const bool fits = o.r == 3 && o.s == 3 && o.stride_h == 1 && o.stride_w == 1 && o.dilation_h == 1 &&
                    o.dilation_w == 1 && o.groups == 1;
  const WinogradShape shape{o.n, o.h, o.w, o.c, o.k, o.p, o.q, o.pad_top, o.pad_left};
  return fits && winograd_pays(context, shape, least_tiles) ? std::optional(shape) : std::nullopt;
}

template <class T>
Tensor winograd_filters(Context& context, int64_t c, int64_t k, const T* w) {
  return transform_filters<T>(context, {context.kernels(), forward_filters(c, w)}, c, k);
}

template <class T>
void winograd_forward(Context& context, const WinogradShape& s, const T* x, const Tensor& filters,
                      const std::type_identity_t<EndOf<T>>& end, T* y) {
  convolve<T>(context, {x, s.h, s.w, s.c, s.pad_top, s.pad_left}, filters, s.n, {y, s.p, s.q, s.k, end});
}

template <class T>
void winograd_forward(Context& context, const WinogradShape& s, const T* x, const T* w, const float* bias, T* y,
                      ResultSums* sums) {
  convolve<T>(context, {x, s.h, s.w, s.c, s.pad_top, s.pad_left}, forward_filters(s.c, w), s.n,
              {y, s.p, s.q, s.k, {.bias = bias}, sums});
}

template <class T>
void winograd_dgrad(Context& context, const WinogradShape& s, const T* dy, const T* w, T* dx, bool add) {
  const WinogradFilters<T> turned{w, 1, s.c, 9 * s.c, true, nullptr, 0};
  convolve<T>(context, {dy, s.p, s.q, s.k, 2 - s.pad_top, 2 - s.pad_left}, turned, s.n,
              {dx, s.h, s.w, s.c, {.residual = add ? dx : nullptr}});
}

template Tensor winograd_filters(Context&, int64_t, int64_t, const float*);
template void winograd_forward(Context&, const WinogradShape&, const float*, const Tensor&, const EndOf<float>&,
                               float*);
template void winograd_forward(Context&, const WinogradShape&, const float*, const float*, const float*, float*,
                               ResultSums*);
template void winograd_dgrad(Context&, const WinogradShape&, const float*, const float*, float*, bool);
template Tensor winograd_filters(Context&, int64_t, int64_t, const Bf16*);
template void winograd_forward(Context&, const WinogradShape&, const Bf16*, const Tensor&, const EndOf<Bf16>&, Bf16*);
template void winograd_forward(Context&, const WinogradShape&, const Bf16*, const Bf16*, const float*, Bf16*,
                               ResultSums*);
template void winograd_dgrad(Context&, const WinogradShape&, const Bf16*, const Bf16*, Bf16*, bool);

}  // namespace dtrain::cpu
