// Implicit GEMM by AMX tiles, forward and for phases of the data gradient. Tile loads read rows of A a constant
// distance apart: images whose pixels do not lie so are repacked, a block of rows at a time, together with their
// padding.
#pragma once

#include <functional>
#include <vector>

#include "libdtrain/cpu/conv/conv_shape.h"
#include "libdtrain/cpu/gemm/statistics.h"
#include "libdtrain/cpu/kernels/gemm_amx.h"

namespace dtrain::cpu {

// Output pixel (i, j) of an image reads the run from pixel (i * stride_h + row, j * stride_w + column) on.
struct Tap {
  int64_t row, column;
};

// y [n, p, q, k] as sums over taps of a run of x [n, h, w, c] times packed weights.
struct TapConv {
  int64_t n, h, w, c;
  int64_t p, q, k;
  int64_t stride_h, stride_w;
  std::vector<Tap> taps;
  int64_t run_pixels = 1;  // of a run; where there are several, all taps have column 0
  OutputLayout layout;

  int64_t depth() const { return static_cast<int64_t>(taps.size()) * run_pixels * c; }
};

// The forward convolution `o` with a run for each tap; or, `merged`, with a run for each row of the kernel and images
// whose columns are padded (see PaddedImages).
TapConv taps_of(const ConvShape& o, bool merged = false);
// A [rows, depth] * B [depth, n] as images of one pixel.
TapConv taps_of_matrix(int64_t rows, int64_t depth, int64_t n);

// The epilogue and the store of some rows by one panel, in one chunk of ChunkedRange.
template <class T>
using RunAmxGemm = std::function<void(const AmxGemm<T>&, int64_t panel, int64_t chunk)>;

// Calls `run` for all rows and panels, by all threads of the context. `padding`: the value of padding; `packed`: panels
// of `columns` columns each. T is Bf16 or uint8_t.
template <class T>
void parallel_amx_gemm(const Context&, const TapConv&, const T* x, T padding, const void* packed, int64_t columns,
                       const RunAmxGemm<T>& run);

// y = epilogue(x * w), `packed_w` as implicit_gemm takes them. `non_temporal`: see MatrixC.
void amx_implicit_gemm(const Context&, const TapConv&, const Bf16* x, const Bf16* packed_w, const Epilogue<Bf16>&,
                       Bf16* y, bool non_temporal, FusedStatistics* statistics = nullptr);

}  // namespace dtrain::cpu
