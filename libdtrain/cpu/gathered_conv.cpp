#include "libdtrain/cpu/gathered_conv.h"

#include <algorithm>

#include "libdtrain/cpu/gathered.h"
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

template <class T>
void pack_columns(Context& context, int64_t inner, int64_t k, const T* w, T* panels) {
  const ProductKernels& product = context.kernels().product;
  const int64_t width = product.columns, step = inner * width;  // elements of a panel
  parallel_ranges(
      inner / kJoined<T>,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* const from = w + row * kJoined<T> * k;
          T* const to = panels + row * kJoined<T> * width;
          if constexpr (std::is_same_v<T, Bf16>)
            product.join_pairs(from, from + k, k, reinterpret_cast<Bf16Pair*>(to), step / kJoined<T>);
          else
            for (int64_t i = 0; i < k; i += width) std::copy_n(from + i, width, to + i / width * step);
        }
      },
      k);
}

template <class T>
void gathered_conv(Context& context, const ConvShape& shape, const T* x, const T* panels, const EndOf<T>& end, T* y,
                   bool may_stream) {
  const ProductKernels& product = context.kernels().product;
  ConvShape o = shape;
  o.c = whole_words<T>(shape.c);
  const bool joins = joins_taps(o), pads = joins || o.c != shape.c;
  const int64_t left = joins ? o.pad_left : 0, right = joins ? o.pad_right : 0;
  const Scratch<T> padded(context, pads ? o.n * o.h * (left + o.w + right) * o.c : 0);
  if (pads) pad_images(shape, x, o.c, left, right, padded.data());
  const T* const from = pads ? padded.data() : x;
  const bool streamed = may_stream && is_streamed(o.n * o.p * o.q * o.k, o.k, product.columns, y);
  if constexpr (std::is_same_v<T, Bf16>)
    if (context.kernels().tiles.pairs)
      return tile_conv(context, joins ? joined_tap_conv_of(o) : tap_conv_of(o), from, panels, end, y, streamed);
  const bool streams = streamed && streaming_pays();
  const Tensor zeros = context.zeros({o.s * o.c}, dtype_of<T>());
  const Windows<T> windows =
      joins ? joined_windows_of<T>(o, from, zeros.data<T>()) : windows_of<T>(o, from, zeros.data<T>());
  // As many panels at a time as the kernel takes, unless the threads would not all have some.
  const int64_t count = o.k >= context.threads() * product.panels * product.columns ? product.panels : 1;
  const int64_t width = count * product.columns;
  const FilterPanels filters{panels, width * windows.taps * windows.run * static_cast<int64_t>(sizeof(T))};
  compute_tiles(context, o, windows, {product.rows, product.rows / count, width}, filters,
                [&](const GatheredTile<T>& tile) {
                  const int64_t column = tile.panel * width, place = tile.pixel * o.k + column;
                  EndOf<T> own = end;
                  if (own.bias) own.bias += column;
                  if (own.residual) own.residual += place;
                  product.gathered<T>()({tile.rows, windows.taps, windows.run, tile.at, tile.row_step,
                                         static_cast<const T*>(filters.at(tile.panel)), y + place, o.k,
                                         std::min(width, o.k - column), own, streams, tile.upcoming});
                });
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
  return o.groups == 1 && reads_pixels_in_order(o) && product_pays(product, o.k, o.c, dtype) &&
         o.k % kJoined<Bf16> == 0 && o.c % product.columns == 0;
}

template <class T>
void gathered_forward(Context& context, const ConvShape& o, const T* x, const T* w, const float* bias, T* y) {
  const int64_t channels = whole_words<T>(o.c), pixels = o.k * o.r * o.s, inner = o.r * o.s * channels;
  const Scratch<T> widened(context, channels == o.c ? 0 : pixels * channels);
  if (channels != o.c) widen_pixels(w, pixels, o.c, channels, widened.data());
  const Scratch<T> panels(context, panel_elements(context, o.k, inner));
  pack_panels(context, o.k, inner, channels == o.c ? w : widened.data(), panels.data());
  gathered_conv(context, o, x, panels.data(), {.bias = bias}, y);
}

template <class T>
void gathered_dgrad(Context& context, const ConvShape& shape, const T* dy, const T* w, T* dx, bool add) {
  ConvShape o = shape;
  std::swap(o.c, o.k);
  const Scratch<T> panels(context, o.c * o.k);
  pack_columns(context, o.c, o.k, w, panels.data());
  gathered_conv(context, o, dy, panels.data(), {.residual = add ? dx : nullptr}, dx);
}

template void pack_panels(Context&, int64_t, int64_t, const float*, float*);
template void pack_panels(Context&, int64_t, int64_t, const Bf16*, Bf16*);
template void pack_columns(Context&, int64_t, int64_t, const float*, float*);
template void pack_columns(Context&, int64_t, int64_t, const Bf16*, Bf16*);
template void gathered_conv(Context&, const ConvShape&, const float*, const float*, const EndOf<float>&, float*, bool);
template void gathered_conv(Context&, const ConvShape&, const Bf16*, const Bf16*, const EndOf<Bf16>&, Bf16*, bool);
template void gathered_forward(Context&, const ConvShape&, const float*, const float*, const float*, float*);
template void gathered_forward(Context&, const ConvShape&, const Bf16*, const Bf16*, const float*, Bf16*);
template void gathered_dgrad(Context&, const ConvShape&, const float*, const float*, float*, bool);
template void gathered_dgrad(Context&, const ConvShape&, const Bf16*, const Bf16*, Bf16*, bool);

}  // namespace dtrain::cpu
