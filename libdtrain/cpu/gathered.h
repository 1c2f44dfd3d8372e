// Convolutions as products of gathered rows: which runs of the images an output pixel reads, and which tiles of pixels
// and panels of filters each thread computes. For images of any type.
#pragma once

#include <algorithm>
#include <vector>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/direct_conv.h"
#include "libdtrain/cpu/parallel.h"

namespace dtrain::cpu {

// Runs of channels that are shorter than this are joined along a row of the kernel.
inline constexpr int64_t kShortRun = 16;

// A convolution as sums over `taps` runs of `run` elements each, from rows of images [n, h, w, c].
template <class Element>
struct Windows {
  const Element* x;
  const Element* zeros;  // a run of what padding holds
  int64_t h, w, c;       // of x
  int64_t taps_wide;     // runs of a row of the kernel
  int64_t taps, run;
  int64_t pad_left;  // 0 where x itself holds the padding

  // The run that tap `tap` of output pixel (image, p, q) reads.
  const Element* at(const ConvShape& o, int64_t image, int64_t p, int64_t q, int64_t tap) const {
    const int64_t row = p * o.stride_h + tap / taps_wide * o.dilation_h - o.pad_top;
    const int64_t column = q * o.stride_w + tap % taps_wide * o.dilation_w - pad_left;
    const bool inside = row >= 0 && row < h && column >= 0 && column < w;
    return inside ? x + ((image * h + row) * w + column) * c : zeros;
  }
};

// Of images with `o.c` channels, a run for each tap.
template <class Element>
Windows<Element> windows_of(const ConvShape& o, const Element* x, const Element* zeros) {
  return {x, zeros, o.h, o.w, o.c, o.s, o.r * o.s, o.c, o.pad_left};
}

// Whether the pixels of a row of the kernel are read as one run, which takes images whose columns are padded.
inline bool joins_taps(const ConvShape& o) { return o.c < kShortRun && o.s > 1 && o.dilation_w == 1; }
inline int64_t padded_width(const ConvShape& o) { return o.pad_left + o.w + o.pad_right; }

// Of images [n, h, padded_width, c], a run for each row of the kernel.
template <class Element>
Windows<Element> joined_windows_of(const ConvShape& o, const Element* padded, const Element* zeros) {
  return {padded, zeros, o.h, padded_width(o), o.c, 1, o.r, o.s * o.c, 0};
}

// Tiles of `rows` output pixels and panels of `columns` filters.
struct TileSize {
  int64_t rows, columns;
};

// What one thread computes: tiles of pixels by panels of filters.
struct Share {
  int64_t first_tile, last_tile, first_panel, last_panel;
};

// Panels are read once per thread that has pixels, pixels once per thread that has panels: what is larger is divided.
inline Share share_of(int thread, int threads, int64_t tiles, int64_t panels, bool divide_panels) {
  const auto part = [&](int64_t count, int i) { return count * i / threads; };
  if (divide_panels) return {0, tiles, part(panels, thread), part(panels, thread + 1)};
  return {part(tiles, thread), part(tiles, thread + 1), 0, panels};
}

// What `count` output pixels from `first` on read: tap t of pixel first + i into at[t * step + i].
template <class Element>
void fill_addresses(const ConvShape& o, const Windows<Element>& x, int64_t first, int64_t count, int64_t step,
                    const Element** at) {
  int64_t image = first / (o.p * o.q), p = first / o.q % o.p, q = first % o.q;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t tap = 0; tap < x.taps; ++tap) at[tap * step + i] = x.at(o, image, p, q, tap);
    if (++q < o.q) continue;
    q = 0;
    if (++p < o.p) continue;
    p = 0;
    ++image;
  }
}

// A tile of output pixels by a panel: `rows` rows from `pixel` on, tap t of row i at at[t * row_step + i]; what is
// worth a prefetch is `ahead_count` elements from `ahead` on in the packed filters.
template <class Element>
struct GatheredTile {
  const Element* const* at;
  int64_t row_step, rows, pixel, panel, ahead = 0, ahead_count = 0;
};

// compute(tile) for each tile of a share. `inner`: elements of a column of a panel.
template <class Element, class Compute>
void for_each_tile(const ConvShape& o, const Windows<Element>& x, const TileSize& size, const Share& share,
                   int64_t inner, const Compute& compute) {
  // Bytes of pixels that pass all panels before the next pixels do: what they read stays in the second-level cache.
  constexpr int64_t kBlockBytes = int64_t{256} << 10;
  constexpr int64_t kMostTiles = 64;  // of a block: its table of addresses stays in the first-level cache
  const int64_t pixels = o.n * o.p * o.q, panel_size = size.columns * inner;
  const int64_t tile_bytes = size.rows * o.c * static_cast<int64_t>(sizeof(Element));
  const int64_t block = std::clamp<int64_t>(kBlockBytes / tile_bytes, 4, kMostTiles);
  std::vector<const Element*> at(static_cast<size_t>(x.taps * block * size.rows));
  for (int64_t tile = share.first_tile; tile < share.last_tile; tile += block) {
    const int64_t first = tile * size.rows;
    const int64_t count = std::min(pixels, std::min(tile + block, share.last_tile) * size.rows) - first;
    fill_addresses(o, x, first, count, count, at.data());
    for (int64_t panel = share.first_panel; panel < share.last_panel; ++panel)
      for (int64_t i = 0; i < count; i += size.rows) {
        GatheredTile<Element> one{at.data() + i, count, std::min(size.rows, count - i), first + i, panel};
        if (panel + 1 < share.last_panel) {  // the next panel comes from memory a share at a time
          const int64_t begin = panel_size * i / count;
          one.ahead = (panel + 1) * panel_size + begin;
          one.ahead_count = panel_size * (i + one.rows) / count - begin;
        }
        compute(one);
      }
  }
}

// compute(tile) for all tiles, by all threads of the context.
template <class Element, class Compute>
void compute_tiles(const Context& context, const ConvShape& o, const Windows<Element>& x, const TileSize& size,
                   const Compute& compute) {
  const int64_t tiles = (o.n * o.p * o.q + size.rows - 1) / size.rows;
  const int64_t panels = (o.k + size.columns - 1) / size.columns;
  const int threads = context.threads();
  const bool divide_panels = panels >= threads && o.k * o.r * o.s > o.n * o.p * o.q;
#pragma omp parallel for schedule(static, 1) num_threads(threads)
  for (int thread = 0; thread < threads; ++thread)
    for_each_tile(o, x, size, share_of(thread, threads, tiles, panels, divide_panels), x.taps * x.run, compute);
}

}  // namespace dtrain::cpu
