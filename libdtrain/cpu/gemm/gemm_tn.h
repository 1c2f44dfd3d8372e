// GEMM with a transposed operand, C [n, depth] = B^T * A, summed over the rows of both: the weight gradient of
// convolutions (A the im2col matrix of x, B = dy, C = dw) and of linear layers. T is float or Bf16; C is f32.
#pragma once

#include <cstdint>
#include <functional>

#include "dtrain/core/types.h"
#include "libdtrain/cpu/gemm/matrix.h"
#include "libdtrain/cpu/kernels/gemm.h"

namespace dtrain {
class Context;
}

namespace dtrain::cpu {

// B [rows, n]: in memory, or made block by block while it is read.
template <class T>
struct MatrixB {
  const T* data;  // all of B, or what `make` reads: it is prefetched
  int64_t n;
  // Returns rows [begin, end), which stay valid until the same thread calls again. Empty: B is in memory.
  std::function<const T*(int64_t thread, int64_t begin, int64_t end)> make{};

  const T* rows(int64_t thread, int64_t begin, int64_t end) const {
    return make ? make(thread, begin, end) : data + begin * n;
  }
};

// Dimensions of a C [n, taps * run].
struct GemmTnShape {
  int64_t rows, taps, run, n;
  bool contiguous;  // see MatrixA

  int64_t macs_per_row() const { return n * taps * run; }
};

// Multiply-adds in a row from which packing pays in f32.
inline constexpr int64_t kMinMacsPerRow = 16384;

// Whether runs and n fill panels.
bool gemm_tn_supports(const Context&, const GemmTnShape&);
// Whether there are enough multiply-adds in a row to pay for the packing, against oneDNN; bf16 needs
// Capabilities::bf16.
bool gemm_tn_pays(const Context&, const GemmTnShape&, DType);

// Stores or adds C. `use_amx`: by tile registers, T being Bf16.
template <class T>
void gemm_tn(Context&, const MatrixA<T>& a, const MatrixB<T>& b, float* c, bool add, bool use_amx = false);

// The variant for f32 that reads A and B where they lie: A is contiguous, its columns fill micro-kernels of several
// panels, and C stays in the second-level cache. Packing then costs more than it gains: up to half as much again at
// 56x56 pixels, 64 to 256 channels.
bool needs_no_packing(const Context&, const GemmTnShape&);
void gemm_tn_unpacked(Context&, const MatrixA<float>& a, const MatrixB<float>& b, float* c, bool add);

// Packed rows in a block: a panel of so many stays in the first-level cache, and so do the panels of a micro-kernel
// that takes several.
inline constexpr int64_t kPackedDepth = 128, kWideDepth = 96;

// Whether each thread sums blocks of its own rows, so that each row of B is read once and `make` may be used. With it,
// gemm_tn gives the same bits as without.
bool gemm_tn_reads_rows_once(const Context&, const GemmTnShape&, DType);
// Rows that `make` is asked for at a time, at most.
template <class T>
constexpr int64_t gemm_tn_max_block() {
  return kPackedDepth * kPackFactor<T>;
}

}  // namespace dtrain::cpu
