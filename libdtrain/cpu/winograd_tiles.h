// What the passes of Winograd's algorithm share: where the tiles of images lie, and how a window of pixels is read.
// Internal to libdtrain/cpu.
#pragma once

#include <algorithm>
#include <cstdint>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/kernels/upcoming.h"
#include "libdtrain/cpu/winograd.h"

namespace dtrain::cpu {

inline constexpr int kWinogradPoints = 36;  // in a transformed tile
inline constexpr int64_t kWinogradOut = 4;  // rows and columns of the output that one tile makes
inline constexpr int64_t kWinogradIn = 6;   // rows and columns of the input that it reads

// `floats`, and a line more: 36 streams that many apart are written at once, and the odd line keeps them out of one
// cache set.
constexpr int64_t winograd_spread(int64_t floats) { return floats + 16; }

// Where the tiles of `n` images of `height` x `width` output pixels lie; tiles are numbered over all images.
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
  // Of images of `height` rows of `row` elements at `data`: the rows that the tiles [begin, end) are the first to
  // reach.
  template <class T>
  Upcoming rows_of(int64_t begin, int64_t end, const T* data, int64_t height, int64_t row) const {
    const auto rows_before = [&](int64_t tile) {
      if (tile == 0) return int64_t{0};
      const Place last = place_of(tile - 1);
      return last.image * height + std::min(last.top + kWinogradOut, height);
    };
    const int64_t first = rows_before(begin), after = rows_before(end);
    return {data + first * row, (after - first) * row * static_cast<int64_t>(sizeof(T))};
  }
  // Whether the transformed tiles of a convolution from c to k channels take more memory than its transformed filters
  // do `copies` times, or as much.
  bool outweigh_filters(int64_t c, int64_t k, int64_t copies) const { return count * (c + k) >= copies * c * k; }
};

// Geometry of the operand that is read in 6x6 windows.
template <class T>
struct WinogradSource {
  const T* data;
  int64_t h, w, c, pad_top, pad_left;

  Upcoming rows_of(const WinogradTiles& tiles, int64_t begin, int64_t end) const {
    return tiles.rows_of(begin, end, data, h, w * c);
  }
  // `zeros`: a pixel, read for those outside the image.
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

}  // namespace dtrain::cpu
