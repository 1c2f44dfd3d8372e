#include "libdtrain/cpu/gemm/gemm_tn.h"

#include <algorithm>
#include <vector>

#include "dtrain/core/context.h"
#include "libdtrain/cpu/gemm/packing.h"
#include "libdtrain/cpu/gemm/prefetch_schedule.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"

namespace dtrain::cpu {
namespace {

// Packed rows in a block for AMX, to which loading and storing sums costs more: all rows, up to kMaxAmxDepth, where C
// outweighs them.
constexpr int64_t kAmxDepth = 256, kMaxAmxDepth = 1024;
constexpr int64_t kAmxUnit = 16;  // packed rows of a tile
// Rows of C in one item of work: so many panels of B stay in the second-level cache.
constexpr int64_t kItemRows = 128;
// Words beyond a panel, or beyond a row of a transposed one: an odd number of lines avoids conflicts in one cache set.
constexpr int64_t kPadWords = 16;
// Multiply-adds in a row from which packing pays in bf16.
constexpr int64_t kMinMacsPerRowBf16 = 8192;
// Columns of a micro-kernel of several panels, at most.
constexpr int64_t kMaxWide = 2 * kMaxTileColumns;
// Rows before a row is packed that it is prefetched.
constexpr int64_t kPrefetchDistance = 4;

template <class T>
void prefetch_row(const T* row, int64_t count) {
  constexpr auto kLine = static_cast<int64_t>(64 / sizeof(T));
  for (int64_t i = 0; i < count; i += kLine) __builtin_prefetch(row + i);
}

// Sums of one thread or of all: C in the order in which items are visited, [n / kItemRows][depth /
// wide][kItemRows][wide], or C itself. A block packs up to `depth` packed rows of A and B and adds their products. AMX
// takes B's panels transposed. Packed rows are words of 32 bits: of one row in f32, of two rows in bf16.
template <class T>
struct PackedGemmTn {
  using Word = std::conditional_t<std::is_same_v<T, Bf16>, Bf16Pair, float>;
  static constexpr int64_t kPack = kPackFactor<T>;  // rows in a packed one

  const GemmKernels& gemm;
  const AmxKernels* amx;  // null: not used
  const MatrixA<T>& a;
  const MatrixB<T>& b;
  const T* zeros;  // for what a last packed row lacks
  int64_t n = b.n, width = gemm.columns, columns = a.depth();
  int64_t panels = amx || columns % (gemm.panels * width) > 0 ? 1 : gemm.panels;  // of A, in a micro-kernel
  int64_t wide = panels * width, across = columns / wide;
  int64_t depth = amx ? kAmxDepth : panels > 1 ? kWideDepth : kPackedDepth;
  int64_t unit = amx ? kAmxUnit : 1;  // packed rows that stay together
  int64_t units = (a.rows + kPack * unit - 1) / (kPack * unit), packed_rows = units * unit;
  int64_t items = (n + kItemRows - 1) / kItemRows * across;

  int64_t panel_step() const { return depth * width + kPadWords; }
  int64_t transposed_row() const { return depth + kPadWords; }
  int64_t a_words() const { return columns / width * panel_step(); }
  int64_t packed_words() const { return a_words() + n / width * panel_step(); }
  int64_t block_words() const { return packed_words() + (amx ? n * transposed_row() : 0); }
  int64_t sum_floats() const { return items * kItemRows * wide; }
  // Units that have sums of their own: enough blocks, and rows whose packing takes as long as merging the sums.
  int64_t min_units() const {
    return std::max<int64_t>(std::max(2 * depth, 2 * columns * n / (columns + n)) / unit, 1);
  }

  // The runs of packed rows [begin, end): those of A tap by tap, then those of B. What the last row lacks is zero.
  std::vector<const T*> addresses(int64_t thread, int64_t begin, int64_t end) const {
    const int64_t first = begin * kPack, count = (end - begin) * kPack;
    const int64_t known = std::clamp<int64_t>(a.rows - first, 0, count);
    const T* const from = b.rows(thread, first, first + known);
    std::vector<const T*> at(static_cast<size_t>((a.taps + 1) * count), zeros);
    a.fill_indirection(first, known, count, at.data());
    for (int64_t i = 0; i < known; ++i) at[static_cast<size_t>(a.taps * count + i)] = from + i * n;
    return at;
  }
  // Packs rows [begin, end) of the block from row `first` on.
  void pack(int64_t thread, int64_t first, int64_t begin, int64_t end, Word* block) const {
    const std::vector<const T*> at = addresses(thread, begin, end);
    const int64_t count = (end - begin) * kPack, tap_step = a.run / width * panel_step();
    for (int64_t row = begin; row < end; ++row) {
      const T* const* runs = at.data() + (row - begin) * kPack;
      const T* const* const later = row + kPrefetchDistance < end ? runs + kPrefetchDistance * kPack : nullptr;
      Word* const to = block + (row - first) * width;
      for (int64_t tap = 0; tap <= a.taps; ++tap) {
        const int64_t elements = tap < a.taps ? a.run : n;
        if (later)
          for (int64_t i = 0; i < kPack; ++i) prefetch_row(later[tap * count + i], elements);
        pack_row(gemm, elements, runs[tap * count], runs[tap * count + kPack - 1],
                 reinterpret_cast<T*>(to + tap * tap_step), panel_step() * kPack);
      }
    }
  }
  // For AMX: transposes one panel of B of a block of `count` packed rows.
  void transpose(int64_t panel, int64_t count, Word* block) const {
    if constexpr (std::is_same_v<T, Bf16>)
      amx->transpose_panel(count, block + a_words() + panel * panel_step(),
                           block + packed_words() + panel * width * transposed_row(), transposed_row());
  }
  // Where item `item` of the sums lies.
  struct Sums {
    float* data;
    int64_t stride;
  };
  Sums sums_of(float* sums, int64_t item) const { return {sums + item * kItemRows * wide, wide}; }
  Sums sums_in_c(float* c, int64_t item) const {
    return {c + item / across * kItemRows * columns + item % across * wide, columns};
  }
  // The rows of the next block, as many parts as micro-kernels run before it: rows of B, then of A where it is
  // contiguous.
  TwoRangeSchedule prefetch_of(int64_t begin, int64_t end) const {
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    const int64_t first = begin * kPack, last = std::min(end * kPack, a.rows);
    const int64_t count = std::max<int64_t>(last - first, 0), parts = amx ? items : n / width * across;
    const bool both = a.contiguous && parts > 1;
    const int64_t of_b = both ? std::clamp<int64_t>(parts * n / (n + a.run), 1, parts - 1) : parts;
    PrefetchSchedule rows_of_a;
    if (both) rows_of_a = {{a.contiguous + first * a.run, count * a.run * kSize}, parts - of_b};
    return {PrefetchSchedule({b.data + first * n, count * n * kSize}, of_b), rows_of_a, of_b};
  }
  // Adds the products of a block of `count` packed rows to the sums of item `item`, or stores them; prefetches the
  // item's part of `next`.
  void multiply(int64_t item, int64_t count, const Word* block, const Sums& to, bool add,
                const TwoRangeSchedule& next = {}) const {
    const int64_t from = item / across * kItemRows, size = std::min(kItemRows, n - from) / width;  // in panels of B
    const int64_t place = item % across, number = from / width * across + place * size;
    const Word* const window = block + place * panels * panel_step();
    if constexpr (std::is_same_v<T, Bf16>)
      if (amx) {
        amx->transposed_a(
            {size, count, block + packed_words() + from * transposed_row(), transposed_row(), width * transposed_row()},
            window, to.data, to.stride, add, next[item]);
        return;
      }
    const Word* gradients = block + a_words() + from / width * panel_step();
    for (int64_t i = 0; i < size; ++i, gradients += panel_step()) {
      const StridedGemm<Word> tile{.rows = width,
                                   .k = count,
                                   .a = gradients,
                                   .a_stride = width,
                                   .b = window,
                                   .b_stride = width,
                                   .y = to.data + i * width * to.stride,
                                   .y_stride = to.stride,
                                   .add = add,
                                   .panels = panels,
                                   .panel_step = panel_step(),
                                   .prefetch = next[number + i]};
      if constexpr (std::is_same_v<T, Bf16>)
        gemm.transposed_a_bf16(tile);
      else
        gemm.transposed_a(tile);
    }
  }
  // Stores or adds row k of C, from `parts` sums, which are added in their order.
  void store(int64_t k, const float* sums, int64_t parts, float* c, bool add) const {
    const float* from = sums + (k / kItemRows * across * kItemRows + k % kItemRows) * wide;
    float* to = c + k * columns;
    for (int64_t place = 0; place < across; ++place, from += kItemRows * wide, to += wide) {
      float sum[kMaxWide] = {};
      for (int64_t part = 0; part < parts && a.rows > 0; ++part)
        for (int64_t i = 0; i < wide; ++i) sum[i] += from[i + part * sum_floats()];
      for (int64_t i = 0; add && i < wide; ++i) sum[i] = to[i] + sum[i];
      std::copy_n(sum, wide, to);
    }
  }
};

// Where rows outweigh C: each thread packs its own rows, which stay in its cache, and has sums of its own.
template <class T>
void share_rows(Context& context, const PackedGemmTn<T>& work, float* c, bool add) {
  const int64_t threads = context.threads();
  const Scratch<typename PackedGemmTn<T>::Word> blocks(context, threads * work.block_words());
  const ChunkedRange chunks(threads, work.units, work.min_units());
  const Scratch<float> sums(context, chunks.count() * work.sum_floats());
  parallel_chunks(chunks, [&](int64_t thread, int64_t chunk, int64_t begin, int64_t end) {
    auto* const block = blocks.data() + thread * work.block_words();
    float* const own = sums.data() + chunk * work.sum_floats();
    const int64_t units = end - begin, rounds = (units * work.unit + work.depth - 1) / work.depth;
    const auto row_of = [&](int64_t round) { return (begin + units * std::min(round, rounds) / rounds) * work.unit; };
    for (int64_t round = 0; round < rounds; ++round) {
      const int64_t first = row_of(round), last = row_of(round + 1);
      work.pack(thread, first, first, last, block);
      const auto next = work.prefetch_of(last, row_of(round + 2));
      for (int64_t panel = 0; work.amx && panel < work.n / work.width; ++panel)
        work.transpose(panel, last - first, block);
      for (int64_t item = 0; item < work.items; ++item)
        work.multiply(item, last - first, block, work.sums_of(own, item), round > 0, next);
    }
  });
  parallel_parts(context, work.n, [&](int, int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) work.store(k, sums.data(), chunks.count(), c, add);
  });
}

// Where C outweighs rows: the threads share the packing of each block, and then the items of C. The sums of a single
// block go to C directly.
template <class T>
void share_c(Context& context, const PackedGemmTn<T>& work, float* c, bool add) {
  const Scratch<typename PackedGemmTn<T>::Word> block(context, work.block_words());
  const bool single = work.packed_rows > 0 && work.packed_rows <= work.depth;
  const Scratch<float> sums(context, single ? 0 : work.sum_floats());
  const int64_t threads = context.threads();
#pragma omp parallel num_threads(context.threads())
  {
    for (int64_t first = 0; first < work.packed_rows; first += work.depth) {
      const int64_t depth = std::min(work.depth, work.packed_rows - first);
#pragma omp for schedule(static, 1)
      for (int64_t thread = 0; thread < threads; ++thread)
        work.pack(thread, first, first + depth * thread / threads, first + depth * (thread + 1) / threads,
                  block.data());
      if (work.amx) {
#pragma omp for schedule(static)
        for (int64_t panel = 0; panel < work.n / work.width; ++panel) work.transpose(panel, depth, block.data());
      }
#pragma omp for schedule(dynamic)
      for (int64_t item = 0; item < work.items; ++item)
        if (single)
          work.multiply(item, depth, block.data(), work.sums_in_c(c, item), add);
        else
          work.multiply(item, depth, block.data(), work.sums_of(sums.data(), item), first > 0);
    }
    if (!single) {
#pragma omp for schedule(static)
      for (int64_t k = 0; k < work.n; ++k) work.store(k, sums.data(), 1, c, add);
    }
  }
}

// Whether packing `rows` packed rows costs more than merging a C of each thread.
bool rows_outweigh_c(const Context& context, int64_t rows, int64_t columns, int64_t n) {
  return rows * (columns + n) >= context.threads() * columns * n;
}

}  // namespace

bool gemm_tn_supports(const Context& context, const GemmTnShape& o) {
  const int64_t width = context.kernels().gemm.columns;
  return o.run % width == 0 && o.n % width == 0;
}

bool gemm_tn_pays(const Context& context, const GemmTnShape& o, DType dtype) {
  if (!gemm_tn_supports(context, o)) return false;
  if (dtype == DType::bf16) return context.kernels().capabilities.bf16 && o.macs_per_row() >= kMinMacsPerRowBf16;
  return o.macs_per_row() >= kMinMacsPerRow || needs_no_packing(context, o);
}

template <class T>
void gemm_tn(Context& context, const MatrixA<T>& a, const MatrixB<T>& b, float* c, bool add, bool use_amx) {
  const Kernels& kernels = context.kernels();
  if constexpr (std::is_same_v<T, float>)
    if (needs_no_packing(context, {a.rows, a.taps, a.run, b.n, a.contiguous != nullptr}))
      return gemm_tn_unpacked(context, a, b, c, add);
  const Tensor zeros = context.zeros({std::max(a.run, b.n)}, dtype_of<T>());
  PackedGemmTn<T> work{kernels.gemm, use_amx ? &kernels.amx : nullptr, a, b, zeros.template data<T>()};
  if (rows_outweigh_c(context, work.packed_rows, work.columns, b.n)) return share_rows(context, work, c, add);
  DT_CHECK(!b.make, "gemm_tn: rows of B are made block by block, but C outweighs them");
  if (use_amx) work.depth = std::clamp(work.packed_rows, kAmxUnit, kMaxAmxDepth);
  share_c(context, work, c, add);
}

bool gemm_tn_reads_rows_once(const Context& context, const GemmTnShape& o, DType dtype) {
  if (dtype == DType::bf16 && context.kernels().capabilities.amx) return false;
  const int64_t packing = dtype == DType::bf16 ? kPackFactor<Bf16> : kPackFactor<float>;
  return gemm_tn_pays(context, o, dtype) &&
         rows_outweigh_c(context, (o.rows + packing - 1) / packing, o.taps * o.run, o.n);
}

template void gemm_tn(Context&, const MatrixA<float>&, const MatrixB<float>&, float*, bool, bool);
template void gemm_tn(Context&, const MatrixA<Bf16>&, const MatrixB<Bf16>&, float*, bool, bool);

}  // namespace dtrain::cpu
