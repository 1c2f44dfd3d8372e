#include "libdtrain/cpu/conv/amx_gemm.h"

#include <algorithm>

#include "dtrain/core/context.h"
#include "libdtrain/cpu/conv/amx_repack.h"
#include "libdtrain/cpu/conv/im2col.h"
#include "libdtrain/cpu/gemm/blocking.h"
#include "libdtrain/cpu/gemm/non_temporal.h"
#include "libdtrain/cpu/gemm/prefetch_schedule.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"

namespace dtrain::cpu {
namespace {

// Output rows of a block.
template <class T>
int64_t rows_of_block(const ConvShape& o, const StridePlanes& planes, int64_t panel_bytes) {
  const int64_t read = reads_pixels_in_order(o) ? o.w * o.c : planes.row_elements(), written = o.q * o.k;
  const int64_t bytes = panel_bytes > kAmxL2PanelBytes ? kAmxBlockBytesOfManyPanels : kAmxBlockBytes;
  return std::max<int64_t>(bytes / ((read + written) * static_cast<int64_t>(sizeof(T))), 1);
}

// Runs the micro-kernel for a range of output rows, at most `most` in a block, by a range of panels.
template <class T, class Run>
void run_range(const ConvShape& o, const BlockRange& range, int64_t most, RepackedBlock<T>& block,
               const PackedPanels& panels, int64_t columns, const Run& run) {
  const int64_t all = range.panels() * panels.bytes, rows = range.last_row - range.first_row;
  const int64_t blocks = (rows + most - 1) / most;
  const auto row_of = [&](int64_t number) { return range.first_row + rows * std::min(number, blocks) / blocks; };
  for (int64_t number = 0; number < blocks; ++number) {
    const auto& parts = block.repack(row_of(number), row_of(number + 1));
    const PrefetchRange next = block.source_of(row_of(number + 1), row_of(number + 2));
    const PrefetchSchedule next_pixels(next, range.panels() * std::ssize(parts));
    for (int64_t panel = range.first_panel, done = 0; panel < range.last_panel; ++panel) {
      const PrefetchSchedule next_panel({panels.at(panel + 1), panel + 1 < range.last_panel ? panels.bytes : 0},
                                        std::ssize(parts));
      for (int64_t part = 0; part < std::ssize(parts); ++part, ++done) {
        AmxGemm<T> one = parts[static_cast<size_t>(part)];
        one.panel = panels.at(panel);
        one.valid = std::min(columns, o.k - panel * columns);
        one.prefetch = all <= kAmxL2PanelBytes ? next_pixels[done] : next_panel[part];
        run(one, panel);
      }
    }
  }
}

}  // namespace

template <class T>
void parallel_amx_gemm(const Context& context, const Im2colView<T>& view, const OutputLayout& layout, T padding,
                       const void* packed, int64_t columns, const RunAmxGemm<T>& run) {
  const ConvShape& o = view.o;
  const int64_t rows = o.n * o.p, count = (o.k + columns - 1) / columns, depth = view.taps() * view.run();
  const PackedPanels panels{packed, columns * depth * static_cast<int64_t>(sizeof(T))};
  const int threads = context.threads();
  const bool by_panels = count >= threads && (o.k * depth > rows * o.q * o.c || rows < threads);
  const StridePlanes planes(view);
  const int64_t panels_of_thread = by_panels ? (count + threads - 1) / threads : count;
  const int64_t most =
      std::min(rows_of_block<T>(o, planes, panels_of_thread * panels.bytes), std::max<int64_t>(rows, 1));
  const int64_t copied = reads_pixels_in_order(o) ? 0 : planes.most_elements(most, o.p);
  const Scratch<T> copies(context, threads * copied);
  // Each chunk of panels repacks all pixels, if they are repacked: then one chunk for each thread is enough.
  const int64_t least_panels = copied > 0 ? count : 1;
  const ChunkedRange chunks(threads, by_panels ? count : rows, by_panels ? least_panels : (most + 1) / 2);
  parallel_chunks(chunks, [&](int64_t thread, int64_t chunk, int64_t begin, int64_t end) {
    const BlockRange range = by_panels ? BlockRange{0, rows, begin, end} : BlockRange{begin, end, 0, count};
    RepackedBlock<T> block(view, layout, planes, padding, copies.data() + thread * copied);
    run_range(o, range, most, block, panels, columns,
              [&](const AmxGemm<T>& part, int64_t panel) { run(part, panel, chunk); });
    fence_non_temporal_stores();
  });
}

template void parallel_amx_gemm(const Context&, const Im2colView<Bf16>&, const OutputLayout&, Bf16, const void*,
                                int64_t, const RunAmxGemm<Bf16>&);
template void parallel_amx_gemm(const Context&, const Im2colView<uint8_t>&, const OutputLayout&, uint8_t, const void*,
                                int64_t, const RunAmxGemm<uint8_t>&);

namespace {

// Adds the rows of y that were written from `column` on to the statistics, where the micro-kernel has not.
void add_statistics(FusedStatistics& statistics, int64_t chunk, const AmxGemm<Bf16>& rows, const ColumnStatistics& done,
                    int64_t column, int64_t columns, const Bf16* y) {
  int64_t written = 0;
  for (int64_t row = 0; row < rows.rows; ++row) {
    const int64_t place = rows.places[row];
    if (place < 0) continue;
    ++written;
    if (done.pivot == nullptr) statistics.add_rows(chunk, column, columns, 1, y + place + column, 0);
  }
  if (done.pivot) statistics.commit_rows(chunk, column, columns, written);
}

}  // namespace

void amx_implicit_gemm(const Context& context, const Im2colView<Bf16>& view, const OutputLayout& layout,
                       const Bf16* packed_w, const Epilogue<Bf16>& epilogue, Bf16* y, bool non_temporal,
                       FusedStatistics* statistics) {
  const Kernels& kernels = context.kernels();
  const int64_t columns = kernels.gemm.columns;
  parallel_amx_gemm<Bf16>(context, view, layout, Bf16{}, packed_w, columns,
                          [&](const AmxGemm<Bf16>& rows, int64_t panel, int64_t chunk) {
                            const int64_t column = panel * columns;
                            Epilogue<Bf16> own = epilogue;
                            if (own.bias) own.bias += column;
                            if (own.residual) own.residual += column;
                            if (statistics) own.sums = statistics->accumulators(chunk, column);
                            kernels.amx.bf16(rows, own, y + column, non_temporal);
                            if (statistics) add_statistics(*statistics, chunk, rows, own.sums, column, columns, y);
                          });
}

}  // namespace dtrain::cpu
