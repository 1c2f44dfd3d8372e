// GEMM with a transposed operand, C [n, depth] = B^T * A, summed over the rows of both: the weight gradient of
// convolutions (A the im2col matrix of x, B = dy, C = dw) and of linear layers. T is float or Bf16; C is f32.
#pragma once

#include <cstdint>
#include <functional>

#include "libdtrain/core/types.h"
#include "libdtrain/cpu/gemm/matrix.h"

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

  int64_t products() const { return n * taps * run; }  // of one row
};

// Products in a row from which packing pays in f32.
inline constexpr int64_t kMinProducts = 16384;

// Whether runs and n fill panels.
bool gemm_tn_supports(const Context&, const GemmTnShape&);
// Whether there are enough products in a row to pay for the packing, against oneDNN; bf16 needs Capabilities::bf16.
bool gemm_tn_pays(const Context&, const GemmTnShape&, DType);

// Stores or adds C.
template <class T>
void gemm_tn(Context&, const MatrixA<T>& a, const MatrixB<T>& b, float* c, bool add);

// Whether each thread sums blocks of its own rows, so that each row of B is read once and `make` may be used. With it,
// gemm_tn gives the same bits as without.
bool gemm_tn_reads_rows_once(const Context&, const GemmTnShape&, DType);
// Rows that `make` is asked for at a time, at most.
template <class T>
int64_t gemm_tn_max_block();

}  // namespace dtrain::cpu
