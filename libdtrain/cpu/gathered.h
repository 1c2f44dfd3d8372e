// Convolutions as products of gathered rows: which tiles of pixels and panels of filters each thread computes. For
// images of any type.
#pragma once

#include <xmmintrin.h>

#include <algorithm>
#include <array>
#include <vector>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/parallel.h"
#include "libdtrain/cpu/shares.h"
#include "libdtrain/cpu/windows.h"

namespace dtrain::cpu {

// Whether the runs of neighbouring pixels fall into few sets of the first-level cache, which then does not hold as many
// as are read together.
template <class Element>
bool runs_collide(const ConvShape& o, const Windows<Element>& x, const TileSize& size) {
  constexpr int64_t kColliding = 4096, kLinesOfSet = 8;  // bytes; at least two more lines are those of the panel
  return size.at_once > kLinesOfSet - 2 && o.stride_w * x.c * static_cast<int64_t>(sizeof(Element)) % kColliding == 0;
}

// Copies the runs at `at` to `to`, a line further apart, and has `at` point there.
template <class Element>
void spread_runs(int64_t run, std::vector<const Element*>& at, std::vector<Element>& to) {
  const int64_t step = run + 64 / static_cast<int64_t>(sizeof(Element));
  to.resize(at.size() * static_cast<size_t>(step));
  for (size_t i = 0; i < at.size(); ++i)
    at[i] = std::copy_n(at[i], run, to.data() + static_cast<int64_t>(i) * step) - run;
}

// A tile of output pixels by its panels: `rows` rows from `pixel` on, tap inner.tap + t of row i at at[t * row_step +
// i].
template <class Element>
struct GatheredTile {
  const Element* const* at;
  int64_t row_step, rows, pixel, panel;
  InnerPart inner;
  Upcoming upcoming{};
  int64_t share = 0;  // see WorkShares
};

// A part of the inner dimension of a tile's panels, in memory: whole panels lie one after the other.
template <class Element>
std::array<Upcoming, 2> memory_of(const Windows<Element>& x, const InnerPart& part, const FilterPanels& panels,
                                  const TileSize& size, int64_t panel) {
  const int64_t inner = x.taps * x.run, one = panels.bytes / size.panels, element = one / inner;
  const char* const at = static_cast<const char*>(panels.at(panel)) + (part.tap * x.run + part.element) * element;
  const int64_t bytes = part.count() * element;
  if (bytes == one) return {Upcoming{at, panels.bytes}};
  return {Upcoming{at, bytes}, Upcoming{at + one, size.panels > 1 ? bytes : 0}};
}

// What is read after part number `part` of the panels of `panel`, while that part of `tiles` tiles is computed.
template <class Element>
TwoPortions next_memory(const Windows<Element>& x, const std::vector<InnerPart>& parts, size_t part,
                        const FilterPanels& panels, const TileSize& size, const Share& share, int64_t panel,
                        int64_t tiles) {
  const bool ends = parts[part].ends;
  if (ends && ++panel == share.last_panel) return {};
  const auto [first, second] = memory_of(x, parts[ends ? 0 : part + 1], panels, size, panel);
  const int64_t of_first = second.bytes > 0 ? (tiles + 1) / 2 : tiles;
  return {Portions(first, of_first), Portions(second, tiles - of_first), of_first};
}

// compute(tile) for each tile of a share: panel by panel where they are too many to stay in the cache, and in parts
// where one alone is too long to, else tile by tile, so that neighbouring parts of the result are written one after the
// other. While it computes, what comes after it is brought into the cache: the next part of the panels in the one case,
// the next pixels in the other.
template <class Element, class Compute>
void for_each_tile(const ConvShape& o, const Windows<Element>& x, const TileSize& size, const Share& share,
                   const FilterPanels& panels, const Compute& compute) {
  constexpr int64_t kCachedPanels = int64_t{256} << 10;  // bytes, in the second-level cache
  const bool many_panels = share.panels() * panels.bytes > kCachedPanels;
  const auto parts = inner_parts(x, many_panels && size.adds ? (panels.bytes + kCachedPanels - 1) / kCachedPanels : 1);
  // Bytes of pixels that pass all panels before the next pixels do: what they read stays in the second-level cache.
  const int64_t block_bytes = int64_t{many_panels ? 256 : 128} << 10;
  constexpr int64_t kPassesPerCopy = 8;  // a copy pays where so many panels read it
  constexpr int64_t kLead = 4096;        // bytes of a panel that are read while memory answers
  constexpr int64_t kMostTiles = 64;     // of a block: its table of addresses stays in the first-level cache
  const int64_t pixel_bytes = o.c * static_cast<int64_t>(sizeof(Element));
  const bool copies = share.panels() >= kPassesPerCopy && runs_collide(o, x, size);
  const int64_t row_bytes = size.rows * pixel_bytes * (copies ? x.taps : 1);
  const int64_t block = std::clamp<int64_t>(block_bytes / row_bytes, x.taps > 1 ? 2 : 4, kMostTiles) * size.rows;
  // Blocks and tiles of equal size: a small one at the end would leave most of the arithmetic units idle.
  const int64_t pixels = share.last_pixel - share.first_pixel, blocks = (pixels + block - 1) / block;
  const auto begin_of = [&](int64_t number) { return share.first_pixel + pixels * number / blocks; };
  const int64_t first_bytes = memory_of(x, parts.front(), panels, size, share.first_panel).front().bytes;
  std::vector<const Element*> at;
  std::vector<Element> copy;
  std::vector<int64_t> begins;  // of tiles
  for (int64_t number = 0; number < blocks; ++number) {
    const int64_t first = begin_of(number), count = begin_of(number + 1) - first;
    // Pixels of the next block, or of the next share, which this thread is likely to take.
    const int64_t next = std::min(begin_of(number + 2), o.n * o.p * o.q) - first - count;
    const int64_t tiles = (count + size.rows - 1) / size.rows;
    at.resize(static_cast<size_t>(x.taps * count));
    fill_addresses(o, x, first, count, count, at.data());
    if (copies) spread_runs(x.run, at, copy);
    begin_parts(count, tiles, begins);
    const auto compute_tile = [&](int64_t panel, const InnerPart& part, int64_t tile, const Upcoming& soon) {
      const int64_t begin = begins[static_cast<size_t>(tile)], end = begins[static_cast<size_t>(tile + 1)];
      const bool reads_panel_first =
          number == 0 && tile == 0 && part.begins && (panel == share.first_panel || !many_panels);
      const Upcoming rest{static_cast<const char*>(panels.at(panel)) + kLead, first_bytes};  // no harm past the end
      compute({at.data() + part.tap * count + begin, count, end - begin, first + begin, panel, part,
               reads_panel_first ? rest : soon});
    };
    if (many_panels) {
      for (int64_t panel = share.first_panel; panel < share.last_panel; ++panel)
        for (size_t part = 0; part < parts.size(); ++part) {
          const TwoPortions soon = next_memory(x, parts, part, panels, size, share, panel, tiles);
          for (int64_t tile = 0; tile < tiles; ++tile) compute_tile(panel, parts[part], tile, soon[tile]);
        }
    } else {
      const int64_t bytes = reads_pixels_in_order(o) ? next * pixel_bytes : 0;
      const Portions soon({x.x + (first + count) * o.c, bytes}, share.panels() * tiles);
      for (int64_t tile = 0, done = 0; tile < tiles; ++tile)
        for (int64_t panel = share.first_panel; panel < share.last_panel; ++panel, ++done)
          compute_tile(panel, parts.front(), tile, soon[done]);
    }
  }
}

// compute(tile) for all tiles, by all threads of the context.
template <class Element, class Compute>
void compute_tiles(const Context& context, const ConvShape& o, const Windows<Element>& x, const TileSize& size,
                   const FilterPanels& panels, const Compute& compute) {
  const int64_t pixels = o.n * o.p * o.q, count = (o.k + size.columns - 1) / size.columns;
  constexpr int64_t kLeastTiles = 4;  // of pixels, for which a short share reads all panels
  const bool divide_panels = count >= context.threads() && o.k * o.r * o.s > pixels;
  const WorkShares shares(context.threads(), divide_panels ? count : (pixels + size.rows - 1) / size.rows,
                          divide_panels ? 1 : kLeastTiles);
  parallel_shares(shares, [&](int64_t, int64_t number, int64_t begin, int64_t end) {
    const auto pixel_of = [&](int64_t tile) { return std::min(tile * size.rows, pixels); };
    const Share share = divide_panels ? Share{0, pixels, begin, end} : Share{pixel_of(begin), pixel_of(end), 0, count};
    for_each_tile(o, x, size, share, panels, [&](GatheredTile<Element> tile) {
      tile.share = number;
      compute(tile);
    });
    _mm_sfence();  // others may read what was stored past the caches
  });
}

}  // namespace dtrain::cpu
