#include "libdtrain/cpu/gathered_conv.h"

#include <algorithm>

#include "libdtrain/cpu/gathered.h"
#include "libdtrain/cpu/gradient_phases.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/parallel.h"
#include "libdtrain/cpu/tile_conv.h"

namespace dtrain::cpu {
namespace {

// `c` and `channels` are numbers that the compiler knows, where it matters.
template <class T>
[[gnu::always_inline]] inline T* widen(const T* from, int64_t count, int64_t c, int64_t channels, T* to) {
  for (int64_t i = 0; i < count; ++i, from += c, to += channels) {
    for (int64_t j = 0; j < c; ++j) to[j] = from[j];
    for (int64_t j = c; j < channels; ++j) to[j] = T{};
  }
  return to;
}

// `count` pixels with c channels as pixels with `channels`, those beyond c zero. Returns the end of what is written.
template <class T>
T* widen_pixels(const T* from, int64_t count, int64_t c, int64_t channels, T* to) {
  if (channels == c) return std::copy_n(from, count * c, to);
  if (c == 3 && channels == 4) return widen(from, count, 3, 4, to);  // colours
  return widen(from, count, c, channels, to);
}

// The images of `o`, whose pixels have `channels` channels there, with zeros for those that x does not have and for
// `left` and `right` columns.
template <class T>
void pad_images(const ConvShape& o, const T* x, int64_t channels, int64_t left, int64_t right, T* padded) {
  const int64_t out = (left + o.w + right) * channels;
  parallel_ranges(
      o.n * o.h,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          T* to = std::fill_n(padded + row * out, left * channels, T{});
          to = widen_pixels(x + row * o.w * o.c, o.w, o.c, channels, to);
          std::fill_n(to, right * channels, T{});
        }
      },
      out);
}

std::vector<int64_t> multiples(int64_t count, int64_t step) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(i * step);
  return all;
}

// Those of all output pixels.
std::vector<int64_t> all_places(const ConvShape& o, const Places& places) {
  std::vector<int64_t> all;
  all.reserve(static_cast<size_t>(o.n * o.p * o.q));
  for (int64_t image = 0; image < o.n; ++image)
    for (int64_t i = 0; i < o.p; ++i)
      for (int64_t j = 0; j < o.q; ++j)
        all.push_back(places.first + image * places.image + i * places.row + j * places.pixel);
  return all;
}

// Whether kernels gain by storing past the caches. Intel's cores stop for want of buffers until a tile of 24 lines is
// stored so: on a Cascade Lake products of 64 inner elements take 1.2 times as long as with lines that are fetched
// early, those of 1024 no less.
bool streaming_pays() {
  static const bool pays = !__builtin_cpu_is("intel");
  return pays;
}

}  // namespace

int64_t panel_elements(const Context& context, int64_t k, int64_t inner) {
  const int64_t width = context.kernels().product.columns;
  return (k + width - 1) / width * width * inner;
}

template <class T>
void pack_panels(Context& context, int64_t k, int64_t inner, const T* w, T* panels) {
  constexpr int64_t kPart = 512;  // words of a panel that one thread packs at a time
  const ProductKernels& product = context.kernels().product;
  const int64_t words = inner / kJoined<T>, parts = (words + kPart - 1) / kPart;
  const int64_t width = product.columns, count = (k + width - 1) / width;
#pragma omp parallel for schedule(static) num_threads(context.threads())
  for (int64_t item = 0; item < count * parts; ++item) {
    const int64_t panel = item / parts, word = item % parts * kPart;
    product.pack_rows(std::min(width, k - panel * width), std::min(kPart, words - word),
                      w + panel * width * inner + word * kJoined<T>, inner * static_cast<int64_t>(sizeof(T)),
                      panels + (panel * inner + word * kJoined<T>)*width);
  }
}

void pack_columns(Context& context, int64_t inner, int64_t k, const float* w, float* panels) {
  const int64_t width = context.kernels().product.columns;
  parallel_ranges(
      inner,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          for (int64_t i = 0; i < k; i += width) std::copy_n(w + row * k + i, width, panels + row * width + i * inner);
      },
      k);
}

namespace {

// The tiles of y = act(x * w + end.bias + end.residual), for any thread.
template <class T>
struct TileProducts {
  const ProductKernels& product;
  const ConvShape& o;
  const Windows<T>& x;
  TileSize size;
  const T* panels;
  EndOf<T> end;
  T* y;
  bool in_order;                  // output pixels lie one after the other
  std::vector<int64_t> place_of;  // those of all output pixels, or, in order, of a tile's rows
  bool streams;
  ResultSums* sums = nullptr;

  FilterPanels filters() const { return {panels, size.columns * x.taps * x.run * static_cast<int64_t>(sizeof(T))}; }
  void operator()(const GatheredTile<T>& tile) const {
    const int64_t column = tile.panel * size.columns, valid = std::min(size.columns, o.k - column),
                  place = column + (in_order ? tile.pixel * o.k : 0);
    const InnerPart& inner = tile.inner;
    EndOf<T> own;
    if (inner.ends && end.bias) own.bias = end.bias + column;
    if (!inner.begins)
      own.residual = y + place;
    else if (end.residual)
      own.residual = end.residual + place;
    own.relu = inner.ends && end.relu;
    if (sums && inner.ends) own.sums = sums->from(tile.share, column);
    const T* const panel = static_cast<const T*>(filters().at(tile.panel));
    product.gathered<T>()({.rows = tile.rows,
                           .taps = inner.taps,
                           .k = inner.run,
                           .at = tile.at,
                           .row_step = tile.row_step,
                           .skip = inner.element,
                           .panel = panel + (inner.tap * x.run + inner.element) * product.columns,
                           .panel_step = x.taps * x.run * product.columns,
                           .y = y + place,
                           .places = place_of.data() + (in_order ? 0 : tile.pixel),
                           .valid = valid,
                           .end = own,
                           .streams = streams && inner.begins && inner.ends,
                           .upcoming = tile.upcoming});
    if (sums && inner.ends)
      own.sums.pivot ? sums->added(tile.share, column, valid, tile.rows)
                     : sums->add_rows(tile.share, column, valid, tile.rows, y + place, o.k);
  }
};

// Sums that are stored before they are complete lose nothing in f32.
template <class T>
constexpr bool kAdds = std::is_same_v<T, float>;

// y = act(x * w + end.bias + end.residual) for windows of x, with the output pixels at `places`.
template <class T>
void gathered_products(Context& context, const ConvShape& o, const Windows<T>& x, const T* panels, const EndOf<T>& end,
                       T* y, const Places& places, bool streams, ResultSums* sums = nullptr) {
  const ProductKernels& product = context.kernels().product;
  const TileSize size = tile_size_of(context.threads(), product, o.k, kAdds<T>);
  const bool in_order = places == Places::in_order(o);
  const TileProducts<T> tiles{.product = product,
                              .o = o,
                              .x = x,
                              .size = size,
                              .panels = panels,
                              .end = end,
                              .y = y,
                              .in_order = in_order,
                              .place_of = in_order ? multiples(product.rows, o.k) : all_places(o, places),
                              .streams = streams,
                              .sums = sums};
  compute_tiles(context, o, x, size, tiles.filters(), tiles);
}

}  // namespace

template <class T>
void gathered_conv(Context& context, const ConvShape& shape, const T* x, const T* panels, const EndOf<T>& end, T* y,
                   bool may_stream, ResultSums* sums) {
  const ProductKernels& product = context.kernels().product;
  ConvShape o = shape;
  o.c = whole_words<T>(shape.c);
  const bool joins = joins_taps(o), pads = joins || o.c != shape.c;
  const int64_t left = joins ? o.pad_left : 0, right = joins ? o.pad_right : 0;
  const Scratch<T> padded(context, pads ? o.n * o.h * (left + o.w + right) * o.c : 0);
  if (pads) pad_images(shape, x, o.c, left, right, padded.data());
  const T* const from = pads ? padded.data() : x;
  const bool streams = may_stream && is_streamed(o.n * o.p * o.q * o.k, o.k, product.columns, y);
  if constexpr (std::is_same_v<T, Bf16>)
    if (context.kernels().tiles.pairs)
      return tile_conv(context, joins ? joined_tap_conv_of(o) : tap_conv_of(o), from, panels, end, y, streams, sums);
  const Tensor zeros = context.zeros({o.s * o.c}, dtype_of<T>());
  const Windows<T> windows =
      joins ? joined_windows_of<T>(o, from, zeros.data<T>()) : windows_of<T>(o, from, zeros.data<T>());
  gathered_products(context, o, windows, panels, end, y, Places::in_order(o), streams && streaming_pays(), sums);
}

namespace {

// A product of so many inner elements and so many columns: runs are long enough, and little of the panels is idle.
bool product_pays(const ProductKernels& product, int64_t run, int64_t columns, DType dtype) {
  if (dtype == DType::bf16 && product.gathered_bf16_rows == nullptr) return false;
  const int64_t whole = (columns + product.columns - 1) / product.columns * product.columns;
  return run >= kShortRun && (whole - columns) * 8 <= columns;
}

}  // namespace

bool gathered_forward_pays(const Context& context, const ConvShape& o, DType dtype) {
  return o.groups == 1 && product_pays(context.kernels().product, o.c, o.k, dtype);
}

bool gathered_dgrad_pays(const Context& context, const ConvShape& o, DType dtype) {
  const ProductKernels& product = context.kernels().product;
  return o.groups == 1 && product_pays(product, o.k, o.c, dtype) && o.k % kJoined<Bf16> == 0 &&
         o.c % product.columns == 0;
}

template <class T>
void gathered_forward(Context& context, const ConvShape& o, const T* x, const T* w, const float* bias, T* y,
                      ResultSums* sums) {
  const int64_t channels = whole_words<T>(o.c), pixels = o.k * o.r * o.s, inner = o.r * o.s * channels;
  const Scratch<T> widened(context, channels == o.c ? 0 : pixels * channels);
  if (channels != o.c) widen_pixels(w, pixels, o.c, channels, widened.data());
  const Scratch<T> panels(context, panel_elements(context, o.k, inner));
  pack_panels(context, o.k, inner, channels == o.c ? w : widened.data(), panels.data());
  gathered_conv(context, o, x, panels.data(), {.bias = bias}, y, true, sums);
}

template <class T>
void multiply_pixels(const Context& context, const PixelProduct<T>& o, bool streams) {
  const ProductKernels& product = context.kernels().product;
  ConvShape conv{};
  conv.n = conv.h = conv.p = conv.r = conv.s = conv.groups = 1;
  conv.stride_h = conv.stride_w = conv.dilation_h = conv.dilation_w = 1;
  conv.w = conv.q = o.pixels, conv.c = o.c, conv.k = o.k;
  const Windows<T> x = windows_of<T>(conv, o.x, nullptr);  // none is outside
  const TileSize size = tile_size_of(1, product, o.k, kAdds<T>);
  const TileProducts<T> tiles{.product = product,
                              .o = conv,
                              .x = x,
                              .size = size,
                              .panels = o.panels,
                              .end = o.end,
                              .y = o.y,
                              .in_order = true,
                              .place_of = multiples(product.rows, o.k),
                              .streams = streams && streaming_pays()};
  const int64_t panels = (o.k + size.columns - 1) / size.columns;
  const Portions soon(o.upcoming, (o.pixels + size.rows - 1) / size.rows * panels);
  int64_t done = 0;
  for_each_tile(conv, x, size, {0, o.pixels, 0, panels}, tiles.filters(), [&](GatheredTile<T> tile) {
    tile.upcoming = soon[done++];
    tiles(tile);
  });
  _mm_sfence();  // others may read what was stored past the caches
}

template <class T>
void gathered_dgrad(Context& context, const ConvShape& o, const T* dy, const T* w, T* dx, bool add) {
  const Tensor zeros = context.zeros({o.k}, dtype_of<T>());
  const int64_t width = context.kernels().product.columns;
  const EndOf<T> end{.residual = add ? dx : nullptr};
  for_each_phase<T>(context, o, w, dx, add, [&](const GradientPhase& phase, const T* panels) {
    const bool streams = phase.places == Places::in_order(phase.conv) &&
                         is_streamed(o.n * o.h * o.w * o.c, o.c, width, dx) && streaming_pays();
    gathered_products(context, phase.conv, windows_of<T>(phase.conv, dy, zeros.data<T>()), panels, end, dx,
                      phase.places, streams);
  });
}

template void pack_panels(Context&, int64_t, int64_t, const float*, float*);
template void pack_panels(Context&, int64_t, int64_t, const Bf16*, Bf16*);
template void gathered_conv(Context&, const ConvShape&, const float*, const float*, const EndOf<float>&, float*, bool,
                            ResultSums*);
template void gathered_conv(Context&, const ConvShape&, const Bf16*, const Bf16*, const EndOf<Bf16>&, Bf16*, bool,
                            ResultSums*);
template void gathered_forward(Context&, const ConvShape&, const float*, const float*, const float*, float*,
                               ResultSums*);
template void gathered_forward(Context&, const ConvShape&, const Bf16*, const Bf16*, const float*, Bf16*, ResultSums*);
template void multiply_pixels(const Context&, const PixelProduct<float>&, bool);
template void multiply_pixels(const Context&, const PixelProduct<Bf16>&, bool);
template void gathered_dgrad(Context&, const ConvShape&, const float*, const float*, float*, bool);
template void gathered_dgrad(Context&, const ConvShape&, const Bf16*, const Bf16*, Bf16*, bool);

}  // namespace dtrain::cpu
