// Implicit GEMM by AMX tiles, forward and for phases of the data gradient. Tile loads read rows of A a constant
// distance apart: images whose pixels do not lie so are repacked, a block of rows at a time, together with their
// padding.
#pragma once

#include <functional>

#include "libdtrain/cpu/conv/im2col.h"
#include "libdtrain/cpu/gemm/statistics.h"
#include "libdtrain/cpu/kernels/gemm_amx.h"

namespace dtrain::cpu {

// The epilogue and the store of some rows by one panel, in one chunk of ChunkedRange.
template <class T>
using RunAmxGemm = std::function<void(const AmxGemm<T>&, int64_t panel, int64_t chunk)>;

// Calls `run` for all rows and panels, by all threads of the context. `padding`: the value of padding; `packed`: panels
// of `columns` columns each. T is Bf16 or uint8_t.
template <class T>
void parallel_amx_gemm(const Context&, const Im2colView<T>&, const OutputLayout&, T padding, const void* packed,
                       int64_t columns, const RunAmxGemm<T>& run);

// y = epilogue(x * w) for weights of pack_weights. `non_temporal`: see MatrixC.
void amx_implicit_gemm(const Context&, const Im2colView<Bf16>&, const OutputLayout&, const Bf16* packed_w,
                       const Epilogue<Bf16>&, Bf16* y, bool non_temporal, FusedStatistics* statistics = nullptr);

}  // namespace dtrain::cpu
