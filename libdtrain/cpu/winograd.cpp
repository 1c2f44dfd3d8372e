#include "libdtrain/cpu/winograd.h"

#include <algorithm>
#include <array>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/gemm_tile.h"
#include "libdtrain/cpu/simd.h"
#include "libdtrain/cpu/winograd_math.h"

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

using Block6 = Float8[6][6];

// Where the tiles of an image of `height` x `width` output pixels lie; tiles are numbered over all images.
struct Tiles {
  int64_t rows, columns, count, group;

  // Over `n` images, for a convolution from c to k channels.
  Tiles(int64_t n, int64_t height, int64_t width, int64_t c, int64_t k)
      : rows((height + kOut - 1) / kOut), columns((width + kOut - 1) / kOut), count(n * rows * columns) {
    constexpr int64_t kFloats = kGroupBytes / static_cast<int64_t>(sizeof(float));
    const int64_t most = std::max<int64_t>(std::max(kFloats, kPoints * c * k) / (kPoints * (c + k)), 1);
    const int64_t groups = (count + most - 1) / most;  // equal in size: a small last one would cost as many filters
    group = (count + groups - 1) / groups;
    group = std::min((group + kTileRows - 1) / kTileRows * kTileRows, count);
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

// Addresses of a 6x6 window of an NHWC image, zeros outside it.
using Window = std::array<std::array<const float*, kIn>, kIn>;

Window window_of(const float* image, int64_t h, int64_t w, int64_t c, int64_t top, int64_t left, const float* zeros) {
  Window window;
  for (int64_t i = 0; i < kIn; ++i)
    for (int64_t j = 0; j < kIn; ++j) {
      const int64_t row = top + i, column = left + j;
      const bool inside = row >= 0 && row < h && column >= 0 && column < w;
      window[i][j] = inside ? image + (row * w + column) * c : zeros;
    }
  return window;
}

// Geometry of the operand that is read in 6x6 windows.
struct Source {
  const float* data;
  int64_t h, w, c, pad_top, pad_left;
};

// Calls `put(channel, block)` with B^T d B for each eight channels of tile `t`.
template <class Put>
void transform_input(const Source& source, const Tiles& tiles, int64_t t, const float* zeros, Put&& put) {
  const auto [image, top, left] = tiles.place_of(t);
  const Window window = window_of(source.data + image * source.h * source.w * source.c, source.h, source.w, source.c,
                                  top - source.pad_top, left - source.pad_left, zeros);
  for (int64_t c = 0; c < source.c; c += 8) {
    Block6 in, out;
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i)
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) in[i][j] = load8(window[i][j] + c);
    transform_2d<6, 6>(in, out, winograd_input<Float8>);
    put(c, out);
  }
}

// The operand that is written, and what is added to it: `bias`, or nothing where it is null, and its old contents.
struct Target {
  float* data;
  int64_t h, w, c;
  const float* bias;
  bool add;
};

// Writes A^T m A of tile `t`, whose products lie as [point][channel], channels last, clipped to the image.
void transform_output(const float* products, const Tiles& tiles, int64_t t, const Target& y) {
  const auto [image, top, left] = tiles.place_of(t);
  const int64_t rows = std::min(kOut, y.h - top), columns = std::min(kOut, y.w - left);
  float* const to = y.data + ((image * y.h + top) * y.w + left) * y.c;
  for (int64_t channel = 0; channel < y.c; channel += 8) {
    const Float8 bias = y.bias ? load8(y.bias + channel) : Float8{};
    Block6 in;
    Float8 out[4][4];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i)
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) in[i][j] = load8(products + (i * 6 + j) * y.c + channel);
    transform_2d<6, 4>(in, out, winograd_output<Float8>);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        float* const pixel = to + (i * y.w + j) * y.c + channel;
        store8(pixel, out[i][j] + (y.add ? load8(pixel) : bias));
      }
  }
}

// G g G^T for sixteen output channels at a time, as panels [point][out / 16][in][16]. `fill(o, i, g)` gives the filters
// that lead from the eight inner channels at i to the sixteen outer ones at o, as g[inner][outer / 8][r][s][outer % 8].
template <class Fill>
void transform_filters(int64_t inner, int64_t outer, float* panels, int threads, Fill&& fill) {
  const int64_t point_stride = inner * outer;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t item = 0; item < outer / kTileColumns * inner; item += 8) {
    Float8 g[8][2][3][3], u[2][6][6];
    fill(item / inner * kTileColumns, item % inner, g);
    for (int i = 0; i < 8; ++i) {
      transform_2d<3, 6>(g[i][0], u[0], winograd_filter<Float8>);
      transform_2d<3, 6>(g[i][1], u[1], winograd_filter<Float8>);
      float* const to = panels + (item + i) * kTileColumns;
      for (int point = 0; point < kPoints; ++point) {
        store8(to + point * point_stride, u[0][point / 6][point % 6]);
        store8(to + point * point_stride + 8, u[1][point / 6][point % 6]);
      }
    }
  }
}

// Floats from one transformed tile of `channels` to the next. The odd line keeps tiles out of one cache set.
constexpr int64_t tile_stride(int64_t channels) { return kPoints * channels + 16; }

// y = x * filters, where `panels` holds the transformed filters [point][out / 16][in][16]. A group's tiles lie as
// [tile][point][channel]: each is written, and read back, as one run of memory.
void convolve(Context& context, const Source& x, const float* panels, int64_t n, const Target& y) {
  const int64_t c = x.c, k = y.c, panels_per_point = k / kTileColumns;
  const Tiles tiles(n, y.h, y.w, c, k);
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
      transform_input(x, tiles, first + t, zeros, [&](int64_t channel, const Block6& block) {
        for (int point = 0; point < kPoints; ++point)
          store8(inputs + t * in_stride + point * c + channel, block[point / 6][point % 6]);
      });
#pragma omp for schedule(static)
    for (int64_t item = 0; item < kPoints * panels_per_point; ++item) {
      const int64_t point = item / panels_per_point, panel = item % panels_per_point;
      for (int64_t depth = 0; depth < c; depth += kDepth)
        gemm_rows(group, std::min(kDepth, c - depth), inputs + point * c + depth, in_stride,
                  panels + (item * c + depth) * kTileColumns, products + point * k + panel * kTileColumns, out_stride,
                  depth > 0);
    }
#pragma omp for schedule(static)
    for (int64_t t = 0; t < group; ++t) transform_output(products + t * out_stride, tiles, first + t, y);
  }
}

}  // namespace

bool winograd_supports(const WinogradShape& s) {
  return s.c % kTileColumns == 0 && s.k % kTileColumns == 0 && s.c > 0 && s.k > 0 && s.pad_top <= 2 && s.pad_left <= 2;
}

bool winograd_pays(const WinogradShape& s) {
  // Measured at 7x7x512 and 14x14x256: 16 tiles lose by 0.4 to 0.9, 32 win by 1.0 to 1.9.
  constexpr int64_t kTilesToShareFilters = 24;
  const int64_t tiles = ((s.p + kOut - 1) / kOut) * ((s.q + kOut - 1) / kOut);
  return winograd_supports(s) && s.c * s.k >= 2048 && 2 * s.p * s.q >= kOut * kOut * tiles &&
         s.n * tiles >= kTilesToShareFilters;
}

void winograd_forward(Context& context, const WinogradShape& s, const float* x, const float* w, const float* bias,
                      float* y) {
  const Tensor panels = context.empty({kPoints * s.c * s.k});
  transform_filters(s.c, s.k, panels.data<float>(), context.threads(), [&](int64_t k, int64_t c, auto& g) {
    for (int j = 0; j < kTileColumns; ++j)
      for (int point = 0; point < 9; ++point) {
        const Float8 channels = load8(w + ((k + j) * 9 + point) * s.c + c);
        for (int i = 0; i < 8; ++i) g[i][j / 8][point / 3][point % 3][j % 8] = channels[i];
      }
  });
  convolve(context, {x, s.h, s.w, s.c, s.pad_top, s.pad_left}, panels.data<float>(), s.n,
           {y, s.p, s.q, s.k, bias, false});
}

void winograd_dgrad(Context& context, const WinogradShape& s, const float* dy, const float* w, float* dx, bool add) {
  const Tensor panels = context.empty({kPoints * s.c * s.k});
  transform_filters(s.k, s.c, panels.data<float>(), context.threads(), [&](int64_t c, int64_t k, auto& g) {
    for (int i = 0; i < 8; ++i)
      for (int point = 0; point < 9; ++point)
        for (int half = 0; half < 2; ++half)
          g[i][half][2 - point / 3][2 - point % 3] = load8(w + ((k + i) * 9 + point) * s.c + c + 8 * half);
  });
  convolve(context, {dy, s.p, s.q, s.k, 2 - s.pad_top, 2 - s.pad_left}, panels.data<float>(), s.n,
           {dx, s.h, s.w, s.c, nullptr, add});
}

namespace {

// A dy A^T of tile `t`, as `put(channel, block)` for each eight channels.
template <class Put>
void transform_gradient(const WinogradShape& s, const float* dy, const Tiles& tiles, int64_t t, const float* zeros,
                        Put&& put) {
  const auto [image, top, left] = tiles.place_of(t);
  const Window window = window_of(dy + image * s.p * s.q * s.k, s.p, s.q, s.k, top, left, zeros);
  for (int64_t k = 0; k < s.k; k += 8) {
    Float8 in[4][4];
    Block6 out;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) in[i][j] = load8(window[i][j] + k);
    transform_2d<4, 6>(in, out, winograd_output_adjoint<Float8>);
    put(k, out);
  }
}

// dw [k, 3, 3, c] = or += G^T u G with u [point][k][c].
void transform_filter_gradient(const WinogradShape& s, const float* u, float* dw, bool add, int threads) {
  const int64_t point_stride = s.k * s.c;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t k = 0; k < s.k; ++k)
    for (int64_t c = 0; c < s.c; c += 8) {
      Block6 in;
      Float8 out[3][3];
      for (int point = 0; point < kPoints; ++point)
        in[point / 6][point % 6] = load8(u + point * point_stride + k * s.c + c);
      transform_2d<6, 3>(in, out, winograd_filter_adjoint<Float8>);
      for (int point = 0; point < 9; ++point) {
        float* const to = dw + (k * 9 + point) * s.c + c;
        const Float8 value = out[point / 3][point % 3];
        store8(to, add ? load8(to) + value : value);
      }
    }
}

// The transformed tiles of a group as wgrad's products read them: [point][channel / 16][tile][16]. One panel, of a
// point and sixteen channels, has all tiles of the group.
struct TilePanels {
  float* data;
  int64_t group;   // tiles
  int64_t stride;  // floats from one point to the next

  // Floats from one point to the next for up to `group` tiles. The odd line keeps 36 streams out of one cache set.
  static int64_t stride_of(int64_t group, int64_t channels) { return group * channels + 16; }

  float* at(int64_t point, int64_t channel, int64_t tile) const {
    return data + point * stride + (channel / kTileColumns * group + tile) * kTileColumns + channel % kTileColumns;
  }
  // Eight channels of a tile.
  void put(int64_t channel, int64_t tile, const Block6& block) const {
    float* const to = at(0, channel, tile);
    for (int point = 0; point < kPoints; ++point) store8(to + point * stride, block[point / 6][point % 6]);
  }
};

}  // namespace

// For each point, u [k][c] = sum over all tiles of the transformed dy [tile][k] times the transformed x [tile][c].
void winograd_wgrad(Context& context, const WinogradShape& s, const float* x, const float* dy, float* dw, bool add) {
  const Tiles tiles(s.n, s.p, s.q, s.c, s.k);
  const int64_t x_stride = TilePanels::stride_of(tiles.group, s.c), dy_stride = TilePanels::stride_of(tiles.group, s.k);
  const Tensor scratch = context.empty({kPoints * (x_stride + dy_stride)});
  const Tensor product = context.empty({kPoints * s.c * s.k});
  const Tensor zero_pixel = context.zeros({std::max(s.c, s.k)});
  float* const u = product.data<float>();  // [point][k][c]
  const float* const zeros = zero_pixel.data<float>();
  const Source source{x, s.h, s.w, s.c, s.pad_top, s.pad_left};
#pragma omp parallel num_threads(context.threads())
  for (int64_t first = 0; first < tiles.count; first += tiles.group) {
    const int64_t group = std::min(tiles.group, tiles.count - first);
    const TilePanels inputs{scratch.data<float>(), group, x_stride};
    const TilePanels gradients{inputs.data + kPoints * x_stride, group, dy_stride};
#pragma omp for schedule(static)
    for (int64_t t = 0; t < group; ++t) {
      transform_input(source, tiles, first + t, zeros,
                      [&](int64_t c, const Block6& block) { inputs.put(c, t, block); });
      transform_gradient(s, dy, tiles, first + t, zeros,
                         [&](int64_t k, const Block6& block) { gradients.put(k, t, block); });
    }
    const int64_t columns = s.c / kTileColumns;
#pragma omp for schedule(static)
    for (int64_t item = 0; item < kPoints * columns; ++item) {
      const int64_t point = item / columns, c = item % columns * kTileColumns;
      for (int64_t t = 0; t < group; t += kDepth)
        for (int64_t k = 0; k < s.k; k += kTileColumns)
          gemm_panels(std::min(kDepth, group - t), gradients.at(point, k, t), inputs.at(point, c, t),
                      u + (point * s.k + k) * s.c + c, s.c, first > 0 || t > 0);
    }
  }
  transform_filter_gradient(s, u, dw, add, context.threads());
}

}  // namespace dtrain::cpu
