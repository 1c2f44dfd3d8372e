// Convolutions, and gradients of their images, as products by tile registers. Those read rows a constant distance
// apart: images whose pixels do not lie so are copied, a block at a time, together with what is outside them.
#pragma once

#include <functional>
#include <vector>

#include "libdtrain/cpu/direct_conv.h"
#include "libdtrain/cpu/kernels/tile_product.h"
#include "libdtrain/cpu/places.h"
#include "libdtrain/cpu/result_sums.h"

namespace dtrain::cpu {

// Output pixel (i, j) of an image reads the run from pixel (i * stride_h + row, j * stride_w + column) on.
struct Tap {
  int64_t row, column;
};

// y [n, p, q, k] as sums over taps of products of a run of x [n, h, w, c] and packed filters.
struct TapConv {
  int64_t n, h, w, c;
  int64_t p, q, k;
  int64_t stride_h, stride_w;
  std::vector<Tap> taps;
  int64_t run_pixels = 1;  // side by side in a run; where they are several, all taps have the column 0
  Places places;

  int64_t inner() const { return static_cast<int64_t>(taps.size()) * run_pixels * c; }  // elements of a filter
};

// The forward convolution `o`, a run for each tap.
TapConv tap_conv_of(const ConvShape& o);
// The same where x has the padding of columns and the pixels of a row of the kernel are one run.
TapConv joined_tap_conv_of(const ConvShape& o);

// What is done with rows of one of WorkShares, by a panel.
template <class T>
using ComputeRows = std::function<void(const TiledRows<T>&, int64_t panel, int64_t share)>;

// Calls `compute` for all rows and panels of the convolution, by all threads of the context. `outside`: what padding
// holds; `panels`: one after another, of `columns` filters each. T is Bf16 or uint8_t.
template <class T>
void compute_taps(const Context&, const TapConv&, const T* x, T outside, const void* panels, int64_t columns,
                  const ComputeRows<T>& compute);

// y = act(x * w + end.bias + end.residual) for the panels of w, as gathered_conv takes them; `streams` as in
// GatheredRows.
void tile_conv(const Context&, const TapConv&, const Bf16* x, const Bf16* panels, const EndOf<Bf16>& end, Bf16* y,
               bool streams, ResultSums* sums = nullptr);

// Whether tile_dgrad takes the shape: one group, channels in whole panels, filters in pairs.
bool tile_dgrad_supports(const Context&, const ConvShape&);
// dx from dy, stored or added.
void tile_dgrad(Context&, const ConvShape&, const Bf16* dy, const Bf16* w, Bf16* dx, bool add);

}  // namespace dtrain::cpu
