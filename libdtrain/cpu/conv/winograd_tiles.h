// Tiles of Winograd's algorithm, for all passes: their places in images, and the windows of pixels that they read.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dtrain/core/context.h"
#include "libdtrain/cpu/conv/winograd.h"
#include "libdtrain/cpu/gemm/statistics.h"
#include "libdtrain/cpu/kernels/prefetch.h"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu {

inline constexpr int kWinogradPoints = 36;  // in a transformed tile
inline constexpr int64_t kWinogradOut = 4;  // rows and columns of the output that one tile makes
inline constexpr int64_t kWinogradIn = 6;   // rows and columns of the input that it reads

// `floats` and a cache line more: 36 streams this far apart are written at once, and the odd line keeps them out of one
// cache set.
constexpr int64_t pad_by_cache_line(int64_t floats) { return floats + 16; }

// The tiles of `n` images of `height` x `width` output pixels, numbered over all images.
struct WinogradTiles {
  int64_t rows, columns, count;

  WinogradTiles(int64_t n, int64_t height, int64_t width)
      : rows((height + kWinogradOut - 1) / kWinogradOut),
        columns((width + kWinogradOut - 1) / kWinogradOut),
        count(n * rows * columns) {}
  // The image of tile `t`, and its first row and column of output.
  struct Place {
    int64_t image, top, left;
  };
  Place place_of(int64_t t) const {
    // Divisions of 64 bits take up to 90 cycles, and memory does not hold as many tiles as 32 bits count.
    const auto tile = static_cast<uint32_t>(t), wide = static_cast<uint32_t>(columns);
    const uint32_t row = tile / wide, high = static_cast<uint32_t>(rows);
    return {row / high, row % high * kWinogradOut, tile % wide * kWinogradOut};
  }
  // The rows that tiles [begin, end) are the first to reach, of images of `height` rows of `row` elements at `data`.
  template <class T>
  PrefetchRange rows_of(int64_t begin, int64_t end, const T* data, int64_t height, int64_t row) const {
    const auto rows_before = [&](int64_t tile) {
      if (tile == 0) return int64_t{0};
      const Place last = place_of(tile - 1);
      return last.image * height + std::min(last.top + kWinogradOut, height);
    };
    const int64_t first = rows_before(begin), after = rows_before(end);
    return {data + first * row, (after - first) * row * static_cast<int64_t>(sizeof(T))};
  }
  // Whether the transformed tiles of a convolution from c to k channels take at least as much memory as `copies` copies
  // of its transformed weights.
  bool outweigh_weights(int64_t c, int64_t k, int64_t copies) const { return count * (c + k) >= copies * c * k; }
};

// The operand that is read in 6x6 windows.
template <class T>
struct WinogradSource {
  const T* data;
  int64_t h, w, c, pad_top, pad_left;

  PrefetchRange rows_of(const WinogradTiles& tiles, int64_t begin, int64_t end) const {
    return tiles.rows_of(begin, end, data, h, w * c);
  }
  // `zeros`: a pixel of padding.
  WinogradWindow<T> window(const WinogradTiles& tiles, int64_t t, const T* zeros) const {
    const auto [image, top, left] = tiles.place_of(t);
    WinogradWindow<T> window;
    for (int64_t i = 0; i < kWinogradIn; ++i) {
      const int64_t row = top - pad_top + i, column = left - pad_left;
      const bool inside = row >= 0 && row < h;
      const int64_t first = ((image * h + row) * w + column) * c;
      for (int64_t j = 0; j < kWinogradIn; ++j)
        window.pixels[i * kWinogradIn + j] = inside && column + j >= 0 && column + j < w ? data + first + j * c : zeros;
    }
    return window;
  }
};

// The output and its epilogue.
template <class T>
struct Output {
  T* data;
  int64_t h, w, c;
  Epilogue<T> end;
  FusedStatistics* statistics = nullptr;

  // The pixels of tile `t` that are inside the image.
  WinogradPixels<T> pixels(const WinogradTiles& tiles, int64_t t) const {
    const auto [image, top, left] = tiles.place_of(t);
    const int64_t first = ((image * h + top) * w + left) * c;
    Epilogue<T> own = end;
    if (own.residual) own.residual += first;
    return {data + first, w * c, c, std::min(kWinogradOut, h - top), std::min(kWinogradOut, w - left), own};
  }
  // Transforms products to pixels, and adds them to the statistics of a chunk.
  void write(int64_t chunk, const WinogradTransforms<T>& transforms, const float* products,
             WinogradPixels<T> to) const {
    if (statistics) to.end.sums = statistics->accumulators(chunk, 0);
    transforms.output_tile(products, c, to);
    if (!statistics) return;
    if (to.end.sums.pivot) return statistics->commit_rows(chunk, 0, c, to.rows * to.columns);
    for (int64_t i = 0; i < to.rows; ++i)
      statistics->add_rows(chunk, 0, c, to.columns, to.to + i * to.row_step, to.column_step);
  }
};

// Floats from one transformed tile of `channels` to the next.
inline constexpr int64_t tile_stride(int64_t channels) { return pad_by_cache_line(kWinogradPoints * channels); }

// Layout of transformed input tiles: channel c of point p of tile t is at t * tile + p * point + c / run * run_step +
// c % run.
struct InputLayout {
  int64_t tile, point, run, run_step;

  // [tile][point][channel]: each tile is written, and read back, as one run of memory.
  static InputLayout tile_by_tile(int64_t channels) { return {tile_stride(channels), channels, channels, 0}; }
  // [channel / run][point][tile][run]: a GEMM reads one run of memory.
  static InputLayout gemm_by_gemm(int64_t count, int64_t channels, int64_t run) {
    const int64_t point = pad_by_cache_line(count * std::min(run, channels));
    return {std::min(run, channels), point, run, kWinogradPoints * point};
  }
  // Of `count` tiles of `channels`.
  int64_t floats(int64_t count, int64_t channels) const {
    return std::max(count * tile, (channels + run - 1) / run * run_step);
  }
  int64_t at(int64_t tile_number, int64_t point_number, int64_t channel) const {
    return tile_number * tile + point_number * point + channel / run * run_step + channel % run;
  }
};

}  // namespace dtrain::cpu
