#include "libdtrain/cpu/gemm/gemm.h"

#include <algorithm>

#include "dtrain/core/context.h"
#include "libdtrain/cpu/gemm/non_temporal.h"
#include "libdtrain/cpu/gemm/tiles.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/threads/work_stealing.h"

namespace dtrain::cpu {
namespace {

// Partial sums of a blocked depth pass through C, which loses nothing in f32 alone.
template <class T>
constexpr bool kSplitsDepth = std::is_same_v<T, float>;

// Computes tiles, on any thread.
template <class T>
class Tiles {
 public:
  Tiles(const Context& context, int threads, const MatrixA<T>& a, const T* packed_b, const Epilogue<T>& epilogue,
        const MatrixC<T>& c, FusedStatistics* statistics)
      : kernels_(context.kernels().gemm),
        a_(a),
        size_(micro_tile_of(threads, kernels_, c.n, kSplitsDepth<T>)),
        b_(packed_b),
        epilogue_(epilogue),
        c_(c),
        statistics_(statistics) {
    for (int64_t i = 0; c.row_offsets.empty() && i < size_.rows; ++i) contiguous_.push_back(i * c.n);
  }

  const MicroTile& size() const { return size_; }
  PackedPanels panels() const { return {b_, size_.columns * a_.depth() * static_cast<int64_t>(sizeof(T))}; }

  void operator()(const GemmTile<T>& tile) const {
    const bool in_order = c_.row_offsets.empty();
    const int64_t column = tile.panel * size_.columns, valid = std::min(size_.columns, c_.n - column),
                  offset = column + (in_order ? tile.row * c_.n : 0);
    const DepthBlock& depth = tile.depth;
    Epilogue<T> own;
    if (depth.is_last && epilogue_.bias) own.bias = epilogue_.bias + column;
    if (!depth.is_first)
      own.residual = c_.data + offset;  // the sums of the depth blocks before
    else if (epilogue_.residual)
      own.residual = epilogue_.residual + offset;
    own.relu = depth.is_last && epilogue_.relu;
    if (statistics_ && depth.is_last) own.sums = statistics_->accumulators(tile.chunk, column);
    const T* const panel = static_cast<const T*>(panels().at(tile.panel));
    kernels_.template gathered<T>()({.rows = tile.rows,
                                     .taps = depth.taps,
                                     .k = depth.run,
                                     .at = tile.at,
                                     .row_step = tile.row_step,
                                     .skip = depth.element,
                                     .panel = panel + (depth.tap * a_.run + depth.element) * kernels_.columns,
                                     .panel_step = a_.depth() * kernels_.columns,
                                     .y = c_.data + offset,
                                     .places = in_order ? contiguous_.data() : c_.row_offsets.data() + tile.row,
                                     .valid = valid,
                                     .end = own,
                                     .non_temporal = c_.non_temporal && depth.is_first && depth.is_last,
                                     .prefetch = tile.prefetch});
    if (!statistics_ || !depth.is_last) return;
    if (own.sums.pivot)
      statistics_->commit_rows(tile.chunk, column, valid, tile.rows);
    else
      statistics_->add_rows(tile.chunk, column, valid, tile.rows, c_.data + offset, c_.n);
  }

 private:
  const GemmKernels& kernels_;
  const MatrixA<T>& a_;
  MicroTile size_;
  const T* b_;
  Epilogue<T> epilogue_;
  const MatrixC<T>& c_;
  FusedStatistics* statistics_;
  std::vector<int64_t> contiguous_;  // offsets of the rows of a tile, where rows are contiguous
};

// Calls compute(tile) for all tiles of a GEMM of n columns, by all threads of the context. Threads share the rows, or
// the panels of B where B is the larger operand.
template <class T, class Compute>
void parallel_tiles(const Context& context, const MatrixA<T>& a, int64_t n, const MicroTile& size,
                    const PackedPanels& b, const Compute& compute) {
  constexpr int64_t kMinTiles = 4;  // of rows, for which a short chunk reads all panels
  const int64_t panels = (n + size.columns - 1) / size.columns, row_tiles = (a.rows + size.rows - 1) / size.rows;
  const bool by_panels = panels >= context.threads() && n * (a.depth() / a.channels) > a.rows;
  const ChunkedRange chunks(context.threads(), by_panels ? panels : row_tiles, by_panels ? 1 : kMinTiles);
  parallel_chunks(chunks, [&](int64_t, int64_t chunk, int64_t begin, int64_t end) {
    const auto row_of = [&](int64_t tile) { return std::min(tile * size.rows, a.rows); };
    const BlockRange range =
        by_panels ? BlockRange{0, a.rows, begin, end} : BlockRange{row_of(begin), row_of(end), 0, panels};
    const auto in_chunk = [&](GemmTile<T> tile) {
      tile.chunk = chunk;
      compute(tile);
    };
    BlockRunner(a, size, range, b, in_chunk).run();
    fence_non_temporal_stores();
  });
}

}  // namespace

template <class T>
void gemm(const Context& context, const MatrixA<T>& a, const T* packed_b, const Epilogue<T>& epilogue,
          const MatrixC<T>& c, FusedStatistics* statistics) {
  const Tiles<T> tiles(context, context.threads(), a, packed_b, epilogue, c, statistics);
  parallel_tiles(context, a, c.n, tiles.size(), tiles.panels(), tiles);
}

template <class T>
void gemm_on_this_thread(const Context& context, const MatrixA<T>& a, const T* packed_b, const Epilogue<T>& epilogue,
                         const MatrixC<T>& c, const PrefetchRange& next) {
  const Tiles<T> tiles(context, 1, a, packed_b, epilogue, c, nullptr);
  const MicroTile& size = tiles.size();
  const int64_t panels = (c.n + size.columns - 1) / size.columns;
  const PrefetchSchedule schedule(next, (a.rows + size.rows - 1) / size.rows * panels);
  int64_t done = 0;
  const auto compute = [&](GemmTile<T> tile) {
    tile.prefetch = schedule[done++];
    tiles(tile);
  };
  BlockRunner(a, size, {0, a.rows, 0, panels}, tiles.panels(), compute).run();
  fence_non_temporal_stores();
}

Requantize requantize_from(Requantize epilogue, int64_t column, int64_t offset) {
  epilogue.scale += column;
  epilogue.shift += column;
  if (epilogue.residual_bytes) epilogue.residual_bytes += offset;
  if (epilogue.residual) epilogue.residual += offset;
  return epilogue;
}
RequantizeOutput output_from(const RequantizeOutput& c, int64_t offset) {
  return {c.bytes ? c.bytes + offset : nullptr, c.floats ? c.floats + offset : nullptr};
}

void gemm(const Context& context, const MatrixA<uint8_t>& a, const int8_t* packed_b, const Requantize& epilogue,
          const RequantizeOutput& c, int64_t n) {
  const GemmKernelsU8S8& kernels = context.kernels().gemm_u8s8;
  const MicroTile size = micro_tile_of(context.threads(), kernels, n, /*splits_depth=*/false);
  const int64_t panel_step = kernels.columns * a.depth();
  const PackedPanels panels{packed_b, size.panels * panel_step};
  parallel_tiles(context, a, n, size, panels, [&](const GemmTile<uint8_t>& tile) {
    const int64_t column = tile.panel * size.columns, offset = tile.row * n + column;
    kernels.indirect({.rows = tile.rows,
                      .taps = a.taps,
                      .k = a.run,
                      .at = tile.at,
                      .row_step = tile.row_step,
                      .panel = static_cast<const int8_t*>(panels.at(tile.panel)),
                      .panel_step = panel_step,
                      .y = output_from(c, offset),
                      .y_stride = n,
                      .valid = std::min(size.columns, n - column),
                      .end = requantize_from(epilogue, column, offset),
                      .prefetch = tile.prefetch});
  });
}

template void gemm(const Context&, const MatrixA<float>&, const float*, const Epilogue<float>&, const MatrixC<float>&,
                   FusedStatistics*);
template void gemm(const Context&, const MatrixA<Bf16>&, const Bf16*, const Epilogue<Bf16>&, const MatrixC<Bf16>&,
                   FusedStatistics*);
template void gemm_on_this_thread(const Context&, const MatrixA<float>&, const float*, const Epilogue<float>&,
                                  const MatrixC<float>&, const PrefetchRange&);
template void gemm_on_this_thread(const Context&, const MatrixA<Bf16>&, const Bf16*, const Epilogue<Bf16>&,
                                  const MatrixC<Bf16>&, const PrefetchRange&);

}  // namespace dtrain::cpu
