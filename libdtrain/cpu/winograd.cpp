#include "libdtrain/cpu/winograd.h"

#include <algorithm>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu {
namespace {

constexpr int kPoints = 36;  // in a transformed tile
constexpr int64_t kOut = 4;  // rows and columns of the output that one tile makes
constexpr int64_t kIn = 6;   // ... and of the input that it reads
// Transformed tiles pass from phase to phase, and between cores, through the shared cache: a group of them takes about
// this many bytes, or as many as the transformed filters, which are read once per group.
constexpr int64_t kGroupBytes = int64_t{4} << 20;
// Inner dimension per pass: a panel of this depth stays in the first-level cache.
constexpr int64_t kDepth = 256;

// Where the tiles of an image of `height` x `width` output pixels lie; tiles are numbered over all images.
struct Tiles {
  int64_t rows, columns, count, group;

  // Over `n` images, for a convolution from c to k channels; `tile_rows`: of a product.
  Tiles(int64_t n, int64_t height, int64_t width, int64_t c, int64_t k, int64_t tile_rows)
      : rows((height + kOut - 1) / kOut), columns((width + kOut - 1) / kOut), count(n * rows * columns) {
    constexpr int64_t kFloats = kGroupBytes / static_cast<int64_t>(sizeof(float));
    const int64_t most = std::max<int64_t>(std::max(kFloats, kPoints * c * k) / (kPoints * (c + k)), 1);
    const int64_t groups = (count + most - 1) / most;  // equal in size: a small last one would cost as many filters
    group = (count + groups - 1) / groups;
    group = std::min((group + tile_rows - 1) / tile_rows * tile_rows, count);
  }
  // The image of tile `t`, and its first row and column of output.
  struct Place {
    int64_t image, top, left;
  };
  Place place_of(int64_t t) const {
    const int64_t in_image = t % (rows * columns);
    return {t / (rows * columns), in_image / columns * kOut, in_image % columns * kOut};
  }
};

WinogradWindow window_of(const float* image, int64_t h, int64_t w, int64_t c, int64_t top, int64_t left,
                         const float* zeros) {
  WinogradWindow window;
  for (int64_t i = 0; i < kIn; ++i)
    for (int64_t j = 0; j < kIn; ++j) {
      const int64_t row = top + i, column = left + j;
      const bool inside = row >= 0 && row < h && column >= 0 && column < w;
      window.pixels[i * kIn + j] = inside ? image + (row * w + column) * c : zeros;
    }
  return window;
}

// Geometry of the operand that is read in 6x6 windows.
struct Source {
  const float* data;
  int64_t h, w, c, pad_top, pad_left;

  WinogradWindow window(const Tiles& tiles, int64_t t, const float* zeros) const {
    const auto [image, top, left] = tiles.place_of(t);
    return window_of(data + image * h * w * c, h, w, c, top - pad_top, left - pad_left, zeros);
  }
};

// The operand that is written, and what is done to each element before.
struct Target {
  float* data;
  int64_t h, w, c;
  ProductEnd end;

  // Those pixels of tile `t` that are inside the image.
  WinogradPixels pixels(const Tiles& tiles, int64_t t) const {
    const auto [image, top, left] = tiles.place_of(t);
    const int64_t first = ((image * h + top) * w + left) * c;
    ProductEnd own = end;
    if (own.residual) own.residual += first;
    return {data + first, w * c, c, std::min(kOut, h - top), std::min(kOut, w - left), own};
  }
};

// The transforms of all filters as panels [point][outer / width][inner][width]. `w` describes those of the first outer
// and inner channels.
void transform_filters(const Context& context, const WinogradFilters& w, int64_t inner, int64_t outer) {
  const Kernels& kernels = context.kernels();
  const int64_t width = kernels.product.columns, lanes = kernels.winograd.lanes;
#pragma omp parallel for schedule(static) num_threads(context.threads())
  for (int64_t item = 0; item < outer / width * inner; item += lanes) {
    WinogradFilters part = w;
    part.w += item / inner * width * w.outer_step + item % inner * w.inner_step;
    part.to += item * width;
    kernels.winograd.filters(part);
  }
}

// Floats from one transformed tile of `channels` to the next. The odd line keeps tiles out of one cache set.
constexpr int64_t tile_stride(int64_t channels) { return kPoints * channels + 16; }

// y = x * filters, where `panels` holds the transformed filters. A group's tiles lie as [tile][point][channel]: each is
// written, and read back, as one run of memory.
void convolve(Context& context, const Source& x, const float* panels, int64_t n, const Target& y) {
  const Kernels& kernels = context.kernels();
  const int64_t width = kernels.product.columns, c = x.c, k = y.c, panels_per_point = k / width;
  const Tiles tiles(n, y.h, y.w, c, k, kernels.product.rows);
  const int64_t in_stride = tile_stride(c), out_stride = tile_stride(k);
  const Tensor scratch = context.empty({tiles.group * (in_stride + out_stride)});
  const Tensor zero_pixel = context.zeros({c});
  float* const inputs = scratch.data<float>();
  float* const products = inputs + tiles.group * in_stride;
  const float* const zeros = zero_pixel.data<float>();
#pragma omp parallel num_threads(context.threads())
  for (int64_t first = 0; first < tiles.count; first += tiles.group) {
    const int64_t group = std::min(tiles.group, tiles.count - first);
#pragma omp for schedule(static)
    for (int64_t t = 0; t < group; ++t)
      kernels.winograd.input_tile(x.window(tiles, first + t, zeros), c, {inputs + t * in_stride, c, c, 0});
#pragma omp for schedule(static)
    for (int64_t item = 0; item < kPoints * panels_per_point; ++item) {
      const int64_t point = item / panels_per_point, panel = item % panels_per_point;
      for (int64_t depth = 0; depth < c; depth += kDepth)
        kernels.product.rows_by_panel(group, std::min(kDepth, c - depth), inputs + point * c + depth, in_stride,
                                      panels + (item * c + depth) * width, products + point * k + panel * width,
                                      out_stride, depth > 0);
    }
#pragma omp for schedule(static)
    for (int64_t t = 0; t < group; ++t)
      kernels.winograd.output_tile(products + t * out_stride, k, y.pixels(tiles, first + t));
  }
}

}  // namespace

bool winograd_supports(const Context& context, const WinogradShape& s) {
  const int64_t width = context.kernels().product.columns;
  return s.c % width == 0 && s.k % width == 0 && s.c > 0 && s.k > 0 && s.pad_top <= 2 && s.pad_left <= 2;
}

bool winograd_pays(const Context& context, const WinogradShape& s, int64_t least_tiles) {
  const int64_t tiles = ((s.p + kOut - 1) / kOut) * ((s.q + kOut - 1) / kOut);
  return winograd_supports(context, s) && s.c * s.k >= 2048 && 2 * s.p * s.q >= kOut * kOut * tiles &&
         s.n * tiles >= least_tiles;
}

Tensor winograd_filters(Context& context, int64_t c, int64_t k, const float* w) {
  const Tensor panels = context.empty({kPoints * c * k});
  transform_filters(context, {w, 9 * c, c, 1, false, panels.data<float>(), c * k}, c, k);
  return panels;
}

void winograd_forward(Context& context, const WinogradShape& s, const float* x, const Tensor& filters,
                      const ProductEnd& end, float* y) {
  convolve(context, {x, s.h, s.w, s.c, s.pad_top, s.pad_left}, filters.data<float>(), s.n, {y, s.p, s.q, s.k, end});
}

void winograd_forward(Context& context, const WinogradShape& s, const float* x, const float* w, const float* bias,
                      float* y) {
  winograd_forward(context, s, x, winograd_filters(context, s.c, s.k, w), {.bias = bias}, y);
}

void winograd_dgrad(Context& context, const WinogradShape& s, const float* dy, const float* w, float* dx, bool add) {
  const Tensor panels = context.empty({kPoints * s.c * s.k});
  transform_filters(context, {w, 1, s.c, 9 * s.c, true, panels.data<float>(), s.c * s.k}, s.k, s.c);
  convolve(context, {dy, s.p, s.q, s.k, 2 - s.pad_top, 2 - s.pad_left}, panels.data<float>(), s.n,
           {dx, s.h, s.w, s.c, {.residual = add ? dx : nullptr}});
}

namespace {

// The transformed tiles of a group as wgrad's products read them: [point][channel / width][tile][width]. One panel, of
// a point and as many channels as a product has columns, has all tiles of the group.
struct TilePanels {
  float* data;
  int64_t group;   // tiles
  int64_t stride;  // floats from one point to the next
  int64_t width;

  // Floats from one point to the next for up to `group` tiles. The odd line keeps 36 streams out of one cache set.
  static int64_t stride_of(int64_t group, int64_t channels) { return group * channels + 16; }

  float* at(int64_t point, int64_t channel, int64_t tile) const {
    return data + point * stride + (channel / width * group + tile) * width;
  }
  WinogradPlace place(int64_t tile) const { return {at(0, 0, tile), stride, width, group * width}; }
};

}  // namespace

// For each point, u [k][c] = sum over all tiles of the transformed dy [tile][k] times the transformed x [tile][c].
void winograd_wgrad(Context& context, const WinogradShape& s, const float* x, const float* dy, float* dw, bool add) {
  const Kernels& kernels = context.kernels();
  const int64_t width = kernels.product.columns;
  const Tiles tiles(s.n, s.p, s.q, s.c, s.k, kernels.product.rows);
  const int64_t x_stride = TilePanels::stride_of(tiles.group, s.c), dy_stride = TilePanels::stride_of(tiles.group, s.k);
  const Tensor scratch = context.empty({kPoints * (x_stride + dy_stride)});
  const Tensor product = context.empty({kPoints * s.c * s.k});
  const Tensor zero_pixel = context.zeros({std::max(s.c, s.k)});
  float* const u = product.data<float>();  // [point][k][c]
  const float* const zeros = zero_pixel.data<float>();
  const Source source{x, s.h, s.w, s.c, s.pad_top, s.pad_left}, gradient{dy, s.p, s.q, s.k, 0, 0};
#pragma omp parallel num_threads(context.threads())
  for (int64_t first = 0; first < tiles.count; first += tiles.group) {
    const int64_t group = std::min(tiles.group, tiles.count - first);
    const TilePanels inputs{scratch.data<float>(), group, x_stride, width};
    const TilePanels gradients{inputs.data + kPoints * x_stride, group, dy_stride, width};
#pragma omp for schedule(static)
    for (int64_t t = 0; t < group; ++t) {
      kernels.winograd.input_tile(source.window(tiles, first + t, zeros), s.c, inputs.place(t));
      kernels.winograd.gradient_tile(gradient.window(tiles, first + t, zeros), s.k, gradients.place(t));
    }
    const int64_t columns = s.c / width;
#pragma omp for schedule(static)
    for (int64_t item = 0; item < kPoints * columns; ++item) {
      const int64_t point = item / columns, c = item % columns * width;
      for (int64_t t = 0; t < group; t += kDepth)
        for (int64_t k = 0; k < s.k; k += width)
          kernels.product.panel_by_panel(std::min(kDepth, group - t), gradients.at(point, k, t), inputs.at(point, c, t),
                                         u + (point * s.k + k) * s.c + c, s.c, first > 0 || t > 0);
    }
  }
#pragma omp parallel for schedule(static) num_threads(context.threads())
  for (int64_t k = 0; k < s.k; ++k)
    kernels.winograd.filter_gradient(u + k * s.c, s.k * s.c, s.c, dw + k * 9 * s.c, add);
}

}  // namespace dtrain::cpu
