#include "libdtrain/cpu/folded_conv.h"

#include <algorithm>

#include "libdtrain/cpu/gathered.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/parallel.h"
#include "libdtrain/cpu/winograd.h"

namespace dtrain::cpu {
namespace {

// x with its columns padded, so that the pixels of a row of the kernel follow one another in memory.
void pad_columns(const ConvShape& o, const float* x, float* padded) {
  const int64_t in = o.w * o.c, left = o.pad_left * o.c, right = o.pad_right * o.c, out = left + in + right;
  parallel_ranges(
      o.n * o.h,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          float* const to = padded + row * out;
          std::fill_n(to, left, 0.0f);
          std::copy_n(x + row * in, in, to + left);
          std::fill_n(to + left + in, right, 0.0f);
        }
      },
      out);
}

void gathered_conv(Context& context, const ConvShape& o, const float* x, const float* panels, const ProductEnd& end,
                   float* y) {
  const ProductKernels& product = context.kernels().product;
  const bool joins = joins_taps(o);
  const Scratch<float> padded(context, joins ? o.n * o.h * padded_width(o) * o.c : 0);
  const Tensor zeros = context.zeros({o.s * o.c});
  if (joins) pad_columns(o, x, padded.data());
  const Windows<float> windows = joins ? joined_windows_of<float>(o, padded.data(), zeros.data<float>())
                                       : windows_of<float>(o, x, zeros.data<float>());
  const int64_t panel_size = product.columns * windows.taps * windows.run;
  compute_tiles(context, o, windows, {product.rows, product.columns}, [&](const GatheredTile<float>& tile) {
    const int64_t column = tile.panel * product.columns, place = tile.pixel * o.k + column;
    ProductEnd own = end;
    if (own.bias) own.bias += column;
    if (own.residual) own.residual += place;
    product.gathered_rows(
        {tile.rows, windows.taps, windows.run, tile.at, tile.row_step, panels + tile.panel * panel_size, y + place, o.k,
         std::min<int64_t>(product.columns, o.k - column), own, panels + tile.ahead, tile.ahead_count});
  });
}

// The transformed filters are there, but are four times as large as the plain ones: they have to be worth reading.
constexpr int64_t kLeastTiles = 16;

}  // namespace

FoldedFilters::FoldedFilters(const ConvShape& o, const float* w, std::vector<float> scale)
    : k_(o.k), inner_(o.r * o.s * o.c), c_(o.c), w_(w), scale_(std::move(scale)) {}

float FoldedFilters::value(int64_t k, int64_t i) const {
  return w_[k * inner_ + i] * (scale_.empty() ? 1.0f : scale_[static_cast<size_t>(k)]);
}

const Tensor& FoldedFilters::panels(Context& context) {
  const std::lock_guard lock(mutex_);
  if (panels_) return panels_;
  const int64_t width = context.kernels().product.columns, count = (k_ + width - 1) / width;
  panels_ = context.empty({count * width * inner_});
  float* const to = panels_.data<float>();
#pragma omp parallel for schedule(static) num_threads(context.threads())
  for (int64_t panel = 0; panel < count; ++panel)
    for (int64_t i = 0; i < inner_; ++i)
      for (int64_t column = 0; column < width; ++column) {
        const int64_t k = panel * width + column;
        to[(panel * inner_ + i) * width + column] = k < k_ ? value(k, i) : 0.0f;
      }
  return panels_;
}

const Tensor& FoldedFilters::winograd(Context& context) {
  const std::lock_guard lock(mutex_);
  if (winograd_) return winograd_;
  const Scratch<float> scaled(context, k_ * inner_);
  for (int64_t k = 0; k < k_; ++k)
    for (int64_t i = 0; i < inner_; ++i) scaled.data()[k * inner_ + i] = value(k, i);
  winograd_ = winograd_filters(context, c_, k_, scaled.data());
  return winograd_;
}

void folded_conv(Context& context, const ConvShape& o, const float* x, FoldedFilters& filters, const ProductEnd& end,
                 float* y) {
  if (const auto winograd = winograd_of(context, o, kLeastTiles))
    winograd_forward(context, *winograd, x, filters.winograd(context), end, y);
  else
    gathered_conv(context, o, x, filters.panels(context).data<float>(), end, y);
}

}  // namespace dtrain::cpu
