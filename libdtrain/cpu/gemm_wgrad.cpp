#include "libdtrain/cpu/gemm_wgrad.h"

#include <algorithm>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/parallel.h"
#include "libdtrain/cpu/shares.h"
#include "libdtrain/cpu/simd.h"
#include "libdtrain/cpu/windows.h"

namespace dtrain::cpu {
namespace {

// Rows of panels per pass: a panel of so many stays in the first-level cache, and so do the panels of a product that
// takes several. Tile registers, to which sums cost more than to others, take more rows, and all at once where the sums
// outweigh pixels.
constexpr int64_t kDepth = 128, kWideDepth = 96, kTileDepth = 256, kMostTileDepth = 1024;
// Tile registers take whole tiles of rows.
constexpr int64_t kTileRows = 16;
// Filters per piece of work: so many panels of dy stay in the second-level cache.
constexpr int64_t kFilters = 128;
// Words beyond a panel, or a row of a turned one: the odd line keeps what a pixel goes into out of one cache set.
constexpr int64_t kOddLine = 16;

// The packing pays from so many products per pixel on.
constexpr int64_t kLeastProducts = 16384, kLeastBf16 = 8192;

// While a row is packed, the pixels of the one so many after it are brought into the cache.
constexpr int64_t kAhead = 4;
template <class T>
void prefetch(const T* pixel, int64_t channels) {
  constexpr auto kLine = static_cast<int64_t>(64 / sizeof(T));
  for (int64_t i = 0; i < channels; i += kLine) __builtin_prefetch(pixel + i);
}

// Rows of panels are words of 32 bits: a pixel's channels in f32, those of two pixels in bf16.
template <class T>
struct PanelsOf;
template <>
struct PanelsOf<float> {
  using Word = float;
  static constexpr int64_t kPixels = 1;  // of a row

  static void pack(const ProductKernels& product, const float* const* pixel, int64_t c, float* to, int64_t step) {
    const int64_t width = product.columns;
    for (int64_t i = 0; i < c; i += width, to += step)
      for (int64_t j = 0; j < width; j += 8) store8(to + j, load8(*pixel + i + j));
  }
  static auto multiply(const ProductKernels& product) { return product.columns_by_panels; }
};
template <>
struct PanelsOf<Bf16> {
  using Word = Bf16Pair;
  static constexpr int64_t kPixels = 2;

  static void pack(const ProductKernels& product, const Bf16* const* pixels, int64_t c, Bf16Pair* to, int64_t step) {
    product.join_pairs(pixels[0], pixels[1], c, to, step);
  }
  static auto multiply(const ProductKernels& product) { return product.pairs_by_pairs; }
};

// Pixels are rows of dy [pixels, k] and of the windows of x [pixels, r s c]: dw [k, r s c] is the product of the one,
// transposed, and the other. A pass packs the pixels of up to `depth` rows of panels of both and adds their share to
// the sums, which lie in the order in which they are visited: [k / kFilters][columns / wide][kFilters][wide]. Tile
// registers take the panels of dy turned.
template <class T>
struct FilterGradient {
  using Panels = PanelsOf<T>;
  using Word = typename Panels::Word;

  const ProductKernels& product;
  const TileKernels* tiles;  // null: none
  const ConvShape& o;
  Windows<T> x;
  const DyRows<T>& dy;
  const T* zeros;  // a pixel of either
  const std::vector<int64_t>* chosen;
  int64_t width = product.columns, columns = x.taps * o.c;
  int64_t panels = tiles || columns % (product.panels * width) > 0 ? 1 : product.panels;  // of windows, in a product
  int64_t wide = panels * width, across = columns / wide;
  int64_t depth = tiles ? kTileDepth : panels > 1 ? kWideDepth : kDepth;
  int64_t pixels = chosen ? static_cast<int64_t>(chosen->size()) : o.n * o.p * o.q;
  int64_t unit = tiles ? kTileRows : 1;  // rows of panels that stay together
  int64_t units = (pixels + Panels::kPixels * unit - 1) / (Panels::kPixels * unit), rows = units * unit;
  int64_t items = (o.k + kFilters - 1) / kFilters * across;

  int64_t panel_step() const { return depth * width + kOddLine; }
  int64_t turned_row() const { return depth + kOddLine; }
  int64_t window_words() const { return columns / width * panel_step(); }
  int64_t packed_words() const { return window_words() + o.k / width * panel_step(); }
  int64_t pass_words() const { return packed_words() + (tiles ? o.k * turned_row() : 0); }
  int64_t sum_floats() const { return items * kFilters * wide; }
  // Units that have sums of their own: enough passes, and pixels whose packing takes as long as the sums do.
  int64_t least_units() const {
    return std::max<int64_t>(std::max(2 * depth, 2 * columns * o.k / (columns + o.k)) / unit, 1);
  }

  // Where the pixels of rows [begin, end) lie: those of the windows, tap by tap, and then those of dy. What is missing
  // from the last row is zero.
  std::vector<const T*> addresses(int64_t core, int64_t begin, int64_t end) const {
    const int64_t first = begin * Panels::kPixels, count = (end - begin) * Panels::kPixels;
    const int64_t known = std::clamp<int64_t>(pixels - first, 0, count);
    const T* const from = chosen ? dy.memory : dy.from(core, first, first + known, o.k);
    std::vector<const T*> at(static_cast<size_t>((x.taps + 1) * count), zeros);
    if (!chosen) fill_addresses(o, x, first, known, count, at.data());
    for (int64_t i = 0; i < known; ++i) {
      const int64_t pixel = chosen ? (*chosen)[static_cast<size_t>(first + i)] : i;  // of those at `from`
      if (chosen) fill_addresses(o, x, pixel, 1, count, at.data() + i);
      at[static_cast<size_t>(x.taps * count + i)] = from + pixel * o.k;
    }
    return at;
  }
  // Packs the rows [begin, end) of the pass from row `first` on.
  void pack(int64_t core, int64_t first, int64_t begin, int64_t end, Word* pass) const {
    const std::vector<const T*> at = addresses(core, begin, end);
    const int64_t count = (end - begin) * Panels::kPixels, tap_step = o.c / width * panel_step();
    for (int64_t row = begin; row < end; ++row) {
      const T* const* pixel = at.data() + (row - begin) * Panels::kPixels;
      const T* const* const ahead = row + kAhead < end ? pixel + kAhead * Panels::kPixels : nullptr;
      Word* const to = pass + (row - first) * width;
      for (int64_t tap = 0; tap <= x.taps; ++tap) {
        const int64_t channels = tap < x.taps ? o.c : o.k;
        if (ahead)
          for (int64_t i = 0; i < Panels::kPixels; ++i) prefetch(ahead[tap * count + i], channels);
        Panels::pack(product, pixel + tap * count, channels, to + tap * tap_step, panel_step());
      }
    }
  }
  // Where tile registers multiply: turns one panel of dy of a pass of `count` rows.
  void turn(int64_t panel, int64_t count, Word* pass) const {
    if constexpr (std::is_same_v<T, Bf16>)
      tiles->turn(count, pass + window_words() + panel * panel_step(),
                  pass + packed_words() + panel * width * turned_row(), turned_row());
  }
  // Where piece `item` of the sums lies.
  struct Place {
    float* y;
    int64_t stride;
  };
  Place place_in(float* sums, int64_t item) const { return {sums + item * kFilters * wide, wide}; }
  Place place_in_filters(float* dw, int64_t item) const {
    return {dw + item / across * kFilters * columns + item % across * wide, columns};
  }
  // What the next pass packs, in as many parts as products are made before it: pixels of dy, then those of x where they
  // lie in one run.
  TwoPortions next_pass(int64_t begin, int64_t end) const {
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    const int64_t first = begin * Panels::kPixels, last = std::min(end * Panels::kPixels, pixels);
    const int64_t count = chosen ? 0 : std::max<int64_t>(last - first, 0), parts = tiles ? items : o.k / width * across;
    const bool both = reads_pixels_in_order(o) && parts > 1;
    const int64_t of_dy = both ? std::clamp<int64_t>(parts * o.k / (o.k + o.c), 1, parts - 1) : parts;
    return {Portions({dy.memory + first * o.k, count * o.k * kSize}, of_dy),
            both ? Portions({x.x + first * o.c, count * o.c * kSize}, parts - of_dy) : Portions(), of_dy};
  }
  // The share of a pass of `count` rows in the sums of piece `item`. Meanwhile this piece's part of the next pass is
  // brought into the cache.
  void multiply(int64_t item, int64_t count, const Word* pass, const Place& to, bool add,
                const TwoPortions& next = {}) const {
    const int64_t from = item / across * kFilters, size = std::min(kFilters, o.k - from) / width;  // in panels of dy
    const int64_t place = item % across, number = from / width * across + place * size;
    const Word* const window = pass + place * panels * panel_step();
    if constexpr (std::is_same_v<T, Bf16>)
      if (tiles) {
        tiles->turned_by_pairs(
            {size, count, pass + packed_words() + from * turned_row(), turned_row(), width * turned_row()}, window,
            to.y, to.stride, add, next[item]);
        return;
      }
    const Word* gradients = pass + window_words() + from / width * panel_step();
    for (int64_t i = 0; i < size; ++i, gradients += panel_step())
      Panels::multiply(product)({.rows = width,
                                 .k = count,
                                 .a = gradients,
                                 .a_stride = width,
                                 .b = window,
                                 .b_stride = width,
                                 .y = to.y + i * width * to.stride,
                                 .y_stride = to.stride,
                                 .add = add,
                                 .panels = panels,
                                 .panel_step = panel_step(),
                                 .upcoming = next[number + i]});
  }
  // Filter k of dw, from the sums of `parts`, which are added in their order.
  void store(int64_t k, const float* sums, int64_t parts, float* dw, bool add) const {
    const float* from = sums + (k / kFilters * across * kFilters + k % kFilters) * wide;
    float* to = dw + k * columns;
    for (int64_t place = 0; place < across; ++place, from += kFilters * wide, to += wide)
      for (int64_t i = 0; i < wide; i += 8) {
        Float8 sum{};
        for (int64_t part = 0; part < parts && pixels > 0; ++part) sum += load8(from + i + part * sum_floats());
        store8(to + i, add ? load8(to + i) + sum : sum);
      }
  }
};

// Where pixels outweigh the sums: each core packs its own pixels, which stay in its cache, and has sums of its own.
template <class T>
void wgrad_by_pixels(Context& context, const FilterGradient<T>& gradient, float* dw, bool add) {
  const int64_t cores = context.threads();
  const Scratch<typename FilterGradient<T>::Word> passes(context, cores * gradient.pass_words());
  const WorkShares shares(context.threads(), gradient.units, gradient.least_units());
  const Scratch<float> sums(context, shares.count() * gradient.sum_floats());
  parallel_shares(shares, [&](int64_t core, int64_t share, int64_t begin, int64_t end) {
    auto* const pass = passes.data() + core * gradient.pass_words();
    float* const own = sums.data() + share * gradient.sum_floats();
    const int64_t units = end - begin, rounds = (units * gradient.unit + gradient.depth - 1) / gradient.depth;
    const auto row_of = [&](int64_t round) {
      return (begin + units * std::min(round, rounds) / rounds) * gradient.unit;
    };
    for (int64_t round = 0; round < rounds; ++round) {
      const int64_t first = row_of(round), last = row_of(round + 1);
      gradient.pack(core, first, first, last, pass);
      const auto next = gradient.next_pass(last, row_of(round + 2));
      for (int64_t panel = 0; gradient.tiles && panel < gradient.o.k / gradient.width; ++panel)
        gradient.turn(panel, last - first, pass);
      for (int64_t item = 0; item < gradient.items; ++item)
        gradient.multiply(item, last - first, pass, gradient.place_in(own, item), round > 0, next);
    }
  });
  parallel_parts(context, gradient.o.k, [&](int, int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) gradient.store(k, sums.data(), shares.count(), dw, add);
  });
}

// Where the sums outweigh pixels: the cores share the packing of each pass, and then the sums. Those of a single pass
// go where they belong.
template <class T>
void wgrad_by_sums(Context& context, const FilterGradient<T>& gradient, float* dw, bool add) {
  const Scratch<typename FilterGradient<T>::Word> pass(context, gradient.pass_words());
  const bool alone = gradient.rows > 0 && gradient.rows <= gradient.depth;
  const Scratch<float> sums(context, alone ? 0 : gradient.sum_floats());
  const int64_t cores = context.threads();
#pragma omp parallel num_threads(context.threads())
  {
    for (int64_t first = 0; first < gradient.rows; first += gradient.depth) {
      const int64_t depth = std::min(gradient.depth, gradient.rows - first);
#pragma omp for schedule(static, 1)
      for (int64_t core = 0; core < cores; ++core)
        gradient.pack(core, first, first + depth * core / cores, first + depth * (core + 1) / cores, pass.data());
      if (gradient.tiles) {
#pragma omp for schedule(static)
        for (int64_t panel = 0; panel < gradient.o.k / gradient.width; ++panel)
          gradient.turn(panel, depth, pass.data());
      }
#pragma omp for schedule(dynamic)
      for (int64_t item = 0; item < gradient.items; ++item)
        if (alone)
          gradient.multiply(item, depth, pass.data(), gradient.place_in_filters(dw, item), add);
        else
          gradient.multiply(item, depth, pass.data(), gradient.place_in(sums.data(), item), first > 0);
    }
    if (!alone) {
#pragma omp for schedule(static)
      for (int64_t k = 0; k < gradient.o.k; ++k) gradient.store(k, sums.data(), 1, dw, add);
    }
  }
}

// Whether pixels are multiplied where they lie: those of 1x1 kernels, whose sums stay in the second-level cache. Of the
// kernels of floats those with several panels in registers gain by it, up to half as much again at 56x56, 64 to 256
// channels: with fewer products a pixel, packing costs the more.
bool multiplies_in_place(const ProductKernels& product, const ConvShape& o) {
  constexpr int64_t kMostSums = 32768;
  return product.panels > 1 && o.c % (product.panels * product.columns) == 0 && o.c * o.k <= kMostSums && o.r == 1 &&
         o.s == 1 && reads_pixels_in_order(o);
}

// Each core adds up its own pixels, some at a time, which stay in its cache; meanwhile the next ones come.
void wgrad_in_place(Context& context, const ConvShape& o, const float* x, const DyRows<float>& dy, float* dw,
                    bool add) {
  constexpr int64_t kRows = 60;  // filters at a time: whole tiles
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  const ProductKernels& product = context.kernels().product;
  const int64_t wide = product.panels * product.columns, count = o.k * o.c;
  const int64_t parts = (o.k + kRows - 1) / kRows * (o.c / wide);
  const int64_t of_dy = parts > 1 ? std::clamp<int64_t>(parts * o.k / (o.k + o.c), 1, parts - 1) : 1;
  const WorkShares shares(context.threads(), o.n * o.p * o.q, 2 * kWideDepth);
  const Scratch<float> sums(context, shares.count() * count);
  parallel_shares(shares, [&](int64_t core, int64_t share, int64_t begin, int64_t end) {
    float* const own = sums.data() + share * count;
    if (begin == end) std::fill_n(own, count, 0.0f);
    for (int64_t first = begin; first < end; first += kWideDepth) {
      const int64_t depth = std::min(kWideDepth, end - first), next = first + depth;
      const int64_t soon = std::min(kWideDepth, end - next);
      const float* const rows = dy.from(core, first, next, o.k);
      const TwoPortions upcoming{Portions({dy.memory + next * o.k, soon * o.k * kFloat}, of_dy),
                                 Portions({x + next * o.c, parts > 1 ? soon * o.c * kFloat : 0}, parts - of_dy), of_dy};
      int64_t part = 0;
      for (int64_t c = 0; c < o.c; c += wide)
        for (int64_t k = 0; k < o.k; k += kRows, ++part)
          product.columns_by_panels({.rows = std::min(kRows, o.k - k),
                                     .k = depth,
                                     .a = rows + k,
                                     .a_stride = o.k,
                                     .b = x + first * o.c + c,
                                     .b_stride = o.c,
                                     .y = own + k * o.c + c,
                                     .y_stride = o.c,
                                     .add = first > begin,
                                     .panels = product.panels,
                                     .panel_step = product.columns,
                                     .upcoming = upcoming[part]});
    }
  });
  parallel_parts(context, count, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float sum = 0;
      for (int64_t share = 0; share < shares.count(); ++share) sum += sums.data()[share * count + i];
      dw[i] = add ? dw[i] + sum : sum;
    }
  });
}

}  // namespace

bool gemm_wgrad_supports(const Context& context, const ConvShape& o) {
  const int64_t width = context.kernels().product.columns;
  return o.groups == 1 && o.c % width == 0 && o.k % width == 0;
}

bool enough_products(const ConvShape& o) { return o.k * o.r * o.s * o.c >= kLeastProducts; }

bool gemm_wgrad_pays(const Context& context, const ConvShape& o, DType images) {
  if (!gemm_wgrad_supports(context, o)) return false;
  if (images == DType::bf16) return context.kernels().product.pairs_by_pairs && o.k * o.r * o.s * o.c >= kLeastBf16;
  return enough_products(o) || multiplies_in_place(context.kernels().product, o);
}

namespace {

// Whether packing the pixels, `rows` of them, costs more than adding up sums of each core.
bool pixels_outweigh_sums(const Context& context, const ConvShape& o, int64_t rows) {
  const int64_t columns = o.r * o.s * o.c;
  return rows * (columns + o.k) >= context.threads() * columns * o.k;
}

template <class T>
FilterGradient<T> gradient_of(Context& context, const ConvShape& o, const T* x, const DyRows<T>& dy, const T* zeros,
                              const std::vector<int64_t>* chosen) {
  const Kernels& kernels = context.kernels();
  const bool tiles = std::is_same_v<T, Bf16> && kernels.tiles.turned_by_pairs;
  return {kernels.product, tiles ? &kernels.tiles : nullptr, o, windows_of(o, x, zeros), dy, zeros, chosen};
}

}  // namespace

template <class T>
void gemm_wgrad(Context& context, const ConvShape& o, const T* x, const T* dy, float* dw, bool add,
                const std::vector<int64_t>* chosen) {
  const DyRows<T> rows{dy};
  if constexpr (std::is_same_v<T, float>)
    if (!chosen && multiplies_in_place(context.kernels().product, o))
      return wgrad_in_place(context, o, x, rows, dw, add);
  const Tensor zero_pixel = context.zeros({std::max(o.c, o.k)}, dtype_of<T>());
  FilterGradient<T> gradient = gradient_of(context, o, x, rows, zero_pixel.data<T>(), chosen);
  if (pixels_outweigh_sums(context, o, gradient.rows)) {
    wgrad_by_pixels(context, gradient, dw, add);
  } else {
    if (gradient.tiles) gradient.depth = std::clamp(gradient.rows, kTileRows, kMostTileDepth);
    wgrad_by_sums(context, gradient, dw, add);
  }
}

bool gemm_wgrad_goes_by_blocks(const Context& context, const ConvShape& o, DType images) {
  if (images == DType::bf16 && context.kernels().tiles.turned_by_pairs) return false;
  const int64_t joined = images == DType::bf16 ? PanelsOf<Bf16>::kPixels : 1;
  return gemm_wgrad_pays(context, o, images) &&
         pixels_outweigh_sums(context, o, (o.n * o.p * o.q + joined - 1) / joined);
}

template <class T>
int64_t most_pixels_of_block() {
  return kDepth * PanelsOf<T>::kPixels;
}

template <class T>
void gemm_wgrad_by_blocks(Context& context, const ConvShape& o, const T* x, const DyRows<T>& dy, float* dw, bool add) {
  if constexpr (std::is_same_v<T, float>)
    if (multiplies_in_place(context.kernels().product, o)) return wgrad_in_place(context, o, x, dy, dw, add);
  const Tensor zero_pixel = context.zeros({std::max(o.c, o.k)}, dtype_of<T>());
  wgrad_by_pixels(context, gradient_of(context, o, x, dy, zero_pixel.data<T>(), nullptr), dw, add);
}

template void gemm_wgrad(Context&, const ConvShape&, const float*, const float*, float*, bool,
                         const std::vector<int64_t>*);
template void gemm_wgrad(Context&, const ConvShape&, const Bf16*, const Bf16*, float*, bool,
                         const std::vector<int64_t>*);
template int64_t most_pixels_of_block<float>();
template int64_t most_pixels_of_block<Bf16>();
template void gemm_wgrad_by_blocks(Context&, const ConvShape&, const float*, const DyRows<float>&, float*, bool);
template void gemm_wgrad_by_blocks(Context&, const ConvShape&, const Bf16*, const DyRows<Bf16>&, float*, bool);

}  // namespace dtrain::cpu
