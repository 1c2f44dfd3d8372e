#include "libdtrain/cpu/byte_conv.h"

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "libdtrain/cpu/byte_rounding.h"
#include "libdtrain/cpu/gathered.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/tile_conv.h"

namespace dtrain::cpu {
namespace {

// Spreads pixels of `used` channels over `channels`, those beyond `used` being `zero`. `to` may be the memory of `from`
// as long as it does not overtake it.
template <class Count>
void spread_channels(int64_t pixels, Count used, int64_t channels, const uint8_t* from, uint8_t zero, uint8_t* to) {
  for (int64_t i = 0; i < pixels; ++i, from += used, to += channels) {
    for (int64_t c = 0; c < used; ++c) to[c] = from[c];
    for (int64_t c = used; c < channels; ++c) to[c] = zero;
  }
}

// One row of w pixels as bytes with `channels` channels each, those beyond o.c zero.
void quantize_row(const ByteProductKernels& kernels, const ConvShape& o, const ByteImages& x, const float* from,
                  int64_t channels, uint8_t* to) {
  const float factor = 1 / x.scale, zero = x.zero;
  if (channels == o.c) return kernels.quantize(o.w * o.c, from, factor, zero, to);
  uint8_t* const tight = to + o.w * (channels - o.c);  // spread from its first pixel on, which it never overtakes
  kernels.quantize(o.w * o.c, from, factor, zero, tight);
  constexpr std::integral_constant<int64_t, 3> kColours;  // loops of known length take a third of the time
  if (o.c == kColours)
    spread_channels(o.w, kColours, whole_quads(kColours), tight, x.zero, to);
  else
    spread_channels(o.w, o.c, channels, tight, x.zero, to);
}

// Floats as bytes [n, h, left + w + right, c] of the shape `o`, whose c is filled up.
void quantize_images(const Context& context, const ConvShape& o, int64_t channels, int64_t left, int64_t right,
                     const ByteImages& x, uint8_t* to) {
  const int64_t out = (left + o.w + right) * channels;
  parallel_ranges(
      o.n * o.h,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          uint8_t* const at = to + row * out;
          std::fill_n(at, left * channels, x.zero);
          quantize_row(context.kernels().byte_product, o, x, x.floats + row * o.w * o.c, channels,
                       at + left * channels);
          std::fill_n(at + (left + o.w) * channels, right * channels, x.zero);
        }
      },
      out);
}

// What ends the columns from `column` on, of rows from `place` on.
ByteEnd end_of(ByteEnd end, int64_t column, int64_t place) {
  end.scale += column;
  end.shift += column;
  if (end.residual_bytes) end.residual_bytes += place;
  if (end.residual) end.residual += place;
  return end;
}
ByteTarget place_of(const ByteTarget& y, int64_t place) {
  return {y.bytes ? y.bytes + place : nullptr, y.floats ? y.floats + place : nullptr};
}

}  // namespace

ByteFilters::ByteFilters(Context& context, const ConvShape& o, const float* w, const std::vector<float>& scale)
    : channels_(whole_quads(o.c)), scales_(static_cast<size_t>(o.k)), sums_(static_cast<size_t>(o.k)) {
  const auto& product = context.kernels().byte_product;
  const int64_t width = product.columns, panels = (o.k + width - 1) / width;
  const int64_t taps = o.r * o.s, inner = taps * channels_;
  DT_CHECK(byte_filters_fit(taps, o.c), "byte_conv: filters of ", inner, " numbers; at most ", kMostByteProducts);
  panels_ = context.zeros({panels * width * inner}, DType::u8);
  auto* const to = static_cast<int8_t*>(panels_.raw());
#pragma omp parallel for schedule(static) num_threads(context.threads())
  for (int64_t k = 0; k < o.k; ++k) {
    std::vector<float> own(static_cast<size_t>(inner), 0);
    for (int64_t t = 0; t < taps; ++t) std::copy_n(w + (k * taps + t) * o.c, o.c, own.data() + t * channels_);
    const auto [level, numbers] = rounded_filter(own, product.most_of_pair);
    const auto at = static_cast<size_t>(k);
    scales_[at] = level * (scale.empty() ? 1 : scale[at]);
    sums_[at] = std::reduce(numbers.begin(), numbers.end(), int32_t{0});
    int8_t* const column = to + k / width * width * inner + k % width * kQuad;
    for (int64_t i = 0; i < inner; i += kQuad) std::copy_n(numbers.data() + i, kQuad, column + i * width);
  }
}

void byte_conv(Context& context, const ConvShape& shape, const ByteImages& x, const ByteFilters& filters,
               const ByteEnd& end, const ByteTarget& y) {
  const ByteProductKernels& product = context.kernels().byte_product;
  ConvShape o = shape;
  o.c = filters.channels();
  DT_CHECK(!x.bytes || o.c == shape.c, "byte_conv: bytes of ", shape.c, " channels, expected whole quads");
  const bool joins = x.floats && joins_taps(o);
  const int64_t width = joins ? padded_width(o) : o.w;
  const Scratch<uint8_t> bytes(context, x.floats ? o.n * o.h * width * o.c : 0);
  if (x.floats) quantize_images(context, shape, o.c, joins ? o.pad_left : 0, joins ? o.pad_right : 0, x, bytes.data());
  const uint8_t* const from = x.floats ? bytes.data() : x.bytes;
  if (context.kernels().tiles.bytes)
    return compute_taps<uint8_t>(
        context, joins ? joined_tap_conv_of(o) : tap_conv_of(o), from, x.zero, filters.panels(), product.columns,
        [&](const TiledRows<uint8_t>& rows, int64_t panel, int64_t) {
          const int64_t column = panel * product.columns;
          context.kernels().tiles.bytes(rows, end_of(end, column, column), place_of(y, column));
        });
  const Scratch<uint8_t> zeros(context, o.s * o.c);  // a run, of joined taps too
  std::fill_n(zeros.data(), o.s * o.c, x.zero);
  const Windows<uint8_t> windows =
      joins ? joined_windows_of<uint8_t>(o, from, zeros.data()) : windows_of<uint8_t>(o, from, zeros.data());
  const TileSize size = tile_size_of(context.threads(), product, o.k, /*adds=*/false);
  const int64_t panel_step = product.columns * windows.taps * windows.run;
  const FilterPanels panels{filters.panels(), size.panels * panel_step};
  compute_tiles(context, o, windows, size, panels, [&](const GatheredTile<uint8_t>& tile) {
    const int64_t column = tile.panel * size.columns, place = tile.pixel * o.k + column;
    product.gathered_rows({.rows = tile.rows,
                           .taps = windows.taps,
                           .k = windows.run,
                           .at = tile.at,
                           .row_step = tile.row_step,
                           .panel = static_cast<const int8_t*>(panels.at(tile.panel)),
                           .panel_step = panel_step,
                           .y = place_of(y, place),
                           .y_stride = o.k,
                           .valid = std::min(size.columns, o.k - column),
                           .end = end_of(end, column, place),
                           .upcoming = tile.upcoming});
  });
}

}  // namespace dtrain::cpu
