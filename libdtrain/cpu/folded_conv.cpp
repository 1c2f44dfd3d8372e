#include "libdtrain/cpu/folded_conv.h"

#include <algorithm>
#include <vector>

#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/parallel.h"
#include "libdtrain/cpu/winograd.h"

namespace dtrain::cpu {
namespace {

// Pixels that pass all panels before the next ones do: what they read stays in the second-level cache.
constexpr int64_t kBlockBytes = int64_t{256} << 10;
constexpr int64_t kMostTiles = 64;  // of a block: its table of addresses stays in the first-level cache
// Runs of channels that are shorter than this are joined along a row of the kernel.
constexpr int64_t kShortRun = 16;

// A convolution as sums over `taps` runs of `run` floats each, from rows of images [n, h, w, c].
struct Windows {
  const float* x;
  const float* zeros;  // a run of them
  int64_t h, w, c;     // of x
  int64_t taps_wide;   // runs of a row of the kernel
  int64_t taps, run;
  int64_t pad_left;  // what is left of it where x is padded

  // The run that tap `tap` of output pixel (image, p, q) reads.
  const float* at(const ConvShape& o, int64_t image, int64_t p, int64_t q, int64_t tap) const {
    const int64_t row = p * o.stride_h + tap / taps_wide * o.dilation_h - o.pad_top;
    const int64_t column = q * o.stride_w + tap % taps_wide * o.dilation_w - pad_left;
    const bool inside = row >= 0 && row < h && column >= 0 && column < w;
    return inside ? x + ((image * h + row) * w + column) * c : zeros;
  }
};

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

// What one thread computes: tiles of pixels by panels of filters.
struct Share {
  int64_t first_tile, last_tile, first_panel, last_panel;
};

// Panels are read once per thread that has pixels, pixels once per thread that has panels: what is larger is divided.
Share share_of(int thread, int threads, int64_t tiles, int64_t panels, bool divide_panels) {
  const auto part = [&](int64_t count, int i) { return count * i / threads; };
  if (divide_panels) return {0, tiles, part(panels, thread), part(panels, thread + 1)};
  return {part(tiles, thread), part(tiles, thread + 1), 0, panels};
}

void fill_addresses(const ConvShape& o, const Windows& x, int64_t first, int64_t count, const float** at) {
  int64_t image = first / (o.p * o.q), p = first / o.q % o.p, q = first % o.q;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t tap = 0; tap < x.taps; ++tap) at[tap * count + i] = x.at(o, image, p, q, tap);
    if (++q < o.q) continue;
    q = 0;
    if (++p < o.p) continue;
    p = 0;
    ++image;
  }
}

void compute_share(const ProductKernels& product, const ConvShape& o, const Windows& x, const float* panels,
                   const ProductEnd& end, float* y, const Share& share) {
  const int64_t pixels = o.n * o.p * o.q, inner = x.taps * x.run;
  const int64_t tile_bytes = product.rows * o.c * static_cast<int64_t>(sizeof(float));
  const int64_t block = std::clamp<int64_t>(kBlockBytes / tile_bytes, 4, kMostTiles);
  std::vector<const float*> at(static_cast<size_t>(x.taps * block * product.rows));
  for (int64_t tile = share.first_tile; tile < share.last_tile; tile += block) {
    const int64_t first = tile * product.rows;
    const int64_t count = std::min(pixels, std::min(tile + block, share.last_tile) * product.rows) - first;
    fill_addresses(o, x, first, count, at.data());
    for (int64_t panel = share.first_panel; panel < share.last_panel; ++panel) {
      const int64_t column = panel * product.columns;
      const int64_t panel_size = product.columns * inner;
      const int64_t valid = std::min<int64_t>(product.columns, o.k - column);
      for (int64_t i = 0; i < count; i += product.rows) {
        const int64_t place = (first + i) * o.k + column;
        ProductEnd own = end;
        if (own.bias) own.bias += column;
        if (own.residual) own.residual += place;
        GatheredRows rows{std::min<int64_t>(product.rows, count - i),
                          x.taps,
                          x.run,
                          at.data() + i,
                          count,
                          panels + column * inner,
                          y + place,
                          o.k,
                          valid,
                          own};
        if (panel + 1 < share.last_panel) {  // which comes from memory a share at a time
          const int64_t begin = panel_size * i / count;
          rows.ahead = rows.panel + panel_size + begin;
          rows.ahead_count = panel_size * (i + rows.rows) / count - begin;
        }
        product.gathered_rows(rows);
      }
    }
  }
}

void gathered_conv(Context& context, const ConvShape& o, const float* x, const float* panels, const ProductEnd& end,
                   float* y) {
  const ProductKernels& product = context.kernels().product;
  const bool joins = o.c < kShortRun && o.s > 1 && o.dilation_w == 1;
  const Scratch<float> padded(context, joins ? o.n * o.h * (o.pad_left + o.w + o.pad_right) * o.c : 0);
  const Tensor zeros = context.zeros({o.s * o.c});
  Windows windows{x, zeros.data<float>(), o.h, o.w, o.c, o.s, o.r * o.s, o.c, o.pad_left};
  if (joins) {
    pad_columns(o, x, padded.data());
    windows = {padded.data(), zeros.data<float>(), o.h, o.pad_left + o.w + o.pad_right, o.c, 1, o.r, o.s * o.c, 0};
  }
  const int64_t tiles = (o.n * o.p * o.q + product.rows - 1) / product.rows;
  const int64_t columns = (o.k + product.columns - 1) / product.columns;
  const int threads = context.threads();
  const bool divide_panels = columns >= threads && o.k * o.r * o.s > o.n * o.p * o.q;
#pragma omp parallel for schedule(static, 1) num_threads(threads)
  for (int thread = 0; thread < threads; ++thread)
    compute_share(product, o, windows, panels, end, y, share_of(thread, threads, tiles, columns, divide_panels));
}

// As Winograd's kernels take it, where it is of their kind and they are faster. The transformed filters are there, but
// are four times as large as the plain ones: they have to be worth reading.
bool takes_winograd(const Context& context, const ConvShape& o, const WinogradShape& shape) {
  constexpr int64_t kTiles = 16;
  return o.r == 3 && o.s == 3 && o.stride_h == 1 && o.stride_w == 1 && o.dilation_h == 1 && o.dilation_w == 1 &&
         winograd_pays(context, shape, kTiles);
}

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
  const WinogradShape winograd{o.n, o.h, o.w, o.c, o.k, o.p, o.q, o.pad_top, o.pad_left};
  if (takes_winograd(context, o, winograd))
    winograd_forward(context, winograd, x, filters.winograd(context), end, y);
  else
    gathered_conv(context, o, x, filters.panels(context).data<float>(), end, y);
}

}  // namespace dtrain::cpu
