// The loops around the micro-kernels of a GEMM: blocks of rows, panels of B, blocks of the depth, tiles, and the memory
// that is prefetched with each tile. For elements of any type.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "libdtrain/cpu/gemm/blocking.h"
#include "libdtrain/cpu/gemm/prefetch_schedule.h"

namespace dtrain::cpu {

// One call of a micro-kernel: `rows` rows of A from `row` on, by the panels from `panel` on. Tap depth.tap + t of row i
// is at at[t * row_step + i].
template <class T>
struct GemmTile {
  const T* const* at;
  int64_t row_step, rows, row, panel;
  DepthBlock depth;
  PrefetchRange prefetch{};
  int64_t chunk = 0;  // see ChunkedRange
};

// Whether neighbouring rows map to so few sets of the first-level cache that it cannot hold those of a tile.
template <class T>
bool rows_conflict_in_l1(const MatrixA<T>& a, const MicroTile& size) {
  constexpr int64_t kPeriod = 4096, kWays = 8;  // bytes between lines of one set; at least two ways are B's
  return size.rows_at_once > kWays - 2 && a.row_stride * static_cast<int64_t>(sizeof(T)) % kPeriod == 0;
}

// Copies the runs at `at` to `copy`, each a cache line further, so that they map to different sets, and updates `at`.
template <class T>
void copy_rows_apart(int64_t run, std::vector<const T*>& at, std::vector<T>& copy) {
  const int64_t step = run + 64 / static_cast<int64_t>(sizeof(T));
  copy.resize(at.size() * static_cast<size_t>(step));
  for (size_t i = 0; i < at.size(); ++i)
    at[i] = std::copy_n(at[i], run, copy.data() + static_cast<int64_t>(i) * step) - run;
}

// Runs the tiles of one BlockRange. B's panels are the outer loop where they exceed the second-level cache, with the
// depth blocked where one panel alone does; else tiles are, so that neighbouring parts of the result are written one
// after the other. Each tile prefetches a part of what follows: the next block of B in the first case, the next rows of
// A in the second.
template <class T, class Compute>
class BlockRunner {
 public:
  BlockRunner(const MatrixA<T>& a, const MicroTile& size, const BlockRange& range, const PackedPanels& b,
              const Compute& compute)
      : a_(a),
        size_(size),
        range_(range),
        b_(b),
        compute_(compute),
        many_panels_(range.panels() * b.bytes > kL2PanelBytes),
        depths_(depth_blocks(a, many_panels_ && size.splits_depth ? (b.bytes + kL2PanelBytes - 1) / kL2PanelBytes : 1)),
        copies_(range.panels() >= kPanelsPerCopy && rows_conflict_in_l1(a, size)) {}

  void run() {
    const int64_t row_bytes = a_.channels * static_cast<int64_t>(sizeof(T)) * (copies_ ? a_.taps : 1);
    const int64_t tiles = (many_panels_ ? kL2RowBytesOfManyPanels : kL2RowBytes) / (size_.rows * row_bytes);
    const int64_t most = std::clamp<int64_t>(tiles, a_.taps > 1 ? 2 : 4, kMaxTiles) * size_.rows;
    // Blocks of equal size: a small one at the end would leave most of the arithmetic units idle.
    const int64_t rows = range_.last_row - range_.first_row, blocks = (rows + most - 1) / most;
    const auto begin_of = [&](int64_t block) { return range_.first_row + rows * block / blocks; };
    for (int64_t block = 0; block < blocks; ++block) {
      first_ = begin_of(block), count_ = begin_of(block + 1) - first_;
      // Rows of the next block, or of the next chunk, which this thread is likely to take.
      const int64_t next = std::min(begin_of(block + 2), a_.rows) - first_ - count_;
      run_block(block == 0, next);
    }
  }

 private:
  static constexpr int64_t kPanelsPerCopy = 8;  // a copy of A pays where so many panels read it
  static constexpr int64_t kMaxTiles = 64;      // of a block: its indirection buffer stays in the first-level cache
  static constexpr int64_t kLead = 4096;        // bytes of a panel that are read before the first prefetch arrives

  void run_block(bool first_block, int64_t next_rows) {
    const int64_t tiles = (count_ + size_.rows - 1) / size_.rows;
    at_.resize(static_cast<size_t>(a_.taps * count_));
    a_.fill_indirection(first_, count_, count_, at_.data());
    if (copies_) copy_rows_apart(a_.run, at_, copy_);
    begins_.resize(static_cast<size_t>(tiles + 1));
    for (int64_t i = 0; i <= tiles; ++i) begins_[static_cast<size_t>(i)] = count_ * i / tiles;
    if (many_panels_) {
      for (int64_t panel = range_.first_panel; panel < range_.last_panel; ++panel)
        for (size_t depth = 0; depth < depths_.size(); ++depth) {
          const TwoRangeSchedule next = panels_after(panel, depth, tiles);
          for (int64_t tile = 0; tile < tiles; ++tile)
            run_tile(panel, depths_[depth], tile, first_block && panel == range_.first_panel, next[tile]);
        }
    } else {
      PrefetchRange rows;
      if (a_.contiguous)
        rows = {a_.contiguous + (first_ + count_) * a_.channels,
                next_rows * a_.channels * static_cast<int64_t>(sizeof(T))};
      const PrefetchSchedule next(rows, range_.panels() * tiles);
      for (int64_t tile = 0, done = 0; tile < tiles; ++tile)
        for (int64_t panel = range_.first_panel; panel < range_.last_panel; ++panel, ++done)
          run_tile(panel, depths_.front(), tile, first_block, next[done]);
    }
  }

  void run_tile(int64_t panel, const DepthBlock& depth, int64_t tile, bool first_use, const PrefetchRange& next) {
    const int64_t begin = begins_[static_cast<size_t>(tile)], end = begins_[static_cast<size_t>(tile + 1)];
    // The first tile that reads a panel prefetches the rest of that panel; past its end this does no harm.
    const PrefetchRange rest{static_cast<const char*>(b_.at(panel)) + kLead, first_panel_bytes_};
    const bool reads_panel_first = first_use && tile == 0 && depth.is_first;
    compute_({at_.data() + depth.tap * count_ + begin, count_, end - begin, first_ + begin, panel, depth,
              reads_panel_first ? rest : next});
  }

  // The memory of a depth block of the panels from `panel` on: whole panels are contiguous.
  std::array<PrefetchRange, 2> memory_of(const DepthBlock& depth, int64_t panel) const {
    const int64_t one = b_.bytes / size_.panels, row = one / a_.depth();
    const char* const at = static_cast<const char*>(b_.at(panel)) + (depth.tap * a_.run + depth.element) * row;
    const int64_t bytes = depth.depth() * row;
    if (bytes == one) return {PrefetchRange{at, b_.bytes}};
    return {PrefetchRange{at, bytes}, PrefetchRange{at + one, size_.panels > 1 ? bytes : 0}};
  }
  // What is read after depth block `depth` of `panel`, in parts for `tiles` tiles.
  TwoRangeSchedule panels_after(int64_t panel, size_t depth, int64_t tiles) const {
    const bool last = depths_[depth].is_last;
    if (last && ++panel == range_.last_panel) return {};
    const auto [first, second] = memory_of(depths_[last ? 0 : depth + 1], panel);
    const int64_t of_first = second.bytes > 0 ? (tiles + 1) / 2 : tiles;
    return {PrefetchSchedule(first, of_first), PrefetchSchedule(second, tiles - of_first), of_first};
  }

  const MatrixA<T>& a_;
  const MicroTile& size_;
  const BlockRange& range_;
  const PackedPanels& b_;
  const Compute& compute_;
  bool many_panels_;
  std::vector<DepthBlock> depths_;
  bool copies_;
  int64_t first_panel_bytes_ = memory_of(depths_.front(), range_.first_panel).front().bytes;
  int64_t first_ = 0, count_ = 0;  // rows of the block
  std::vector<const T*> at_;       // its indirection buffer
  std::vector<T> copy_;
  std::vector<int64_t> begins_;  // of its tiles
};

}  // namespace dtrain::cpu
