// GEMM: C = epilogue(A * B) in f32, bf16 and int8, for convolutions and for linear layers. A is read through an
// indirection buffer, B is packed once and used often, and the epilogue is applied while the sums are in registers. An
// element of C is one sum in the order of the depth.
#pragma once

#include <cstdint>
#include <vector>

#include "libdtrain/cpu/gemm/matrix.h"
#include "libdtrain/cpu/gemm/statistics.h"
#include "libdtrain/cpu/kernels/gemm.h"
#include "libdtrain/cpu/kernels/gemm_u8s8.h"

namespace dtrain::cpu {

// C [rows, n] of T, float or Bf16.
template <class T>
struct MatrixC {
  T* data;
  int64_t n;
  std::vector<int64_t> row_offsets{};  // of each row, in elements; empty: the rows are contiguous
  bool non_temporal = false;           // written past the caches: see stores_past_caches
};

// For the panels of B that packing.h makes; bf16 needs Capabilities::bf16. Where `statistics` is given, the elements of
// C are added up there, and n is a multiple of the panels' width.
template <class T>
void gemm(const Context&, const MatrixA<T>& a, const T* packed_b, const Epilogue<T>&, const MatrixC<T>& c,
          FusedStatistics* statistics = nullptr);

// The same by the calling thread alone, which prefetches `next` meanwhile. The rows of C are contiguous.
template <class T>
void gemm_on_this_thread(const Context&, const MatrixA<T>& a, const T* packed_b, const Epilogue<T>&,
                         const MatrixC<T>& c, const PrefetchRange& next);

// Unsigned bytes by signed ones; the sums of 32 bits are exact. B's panels are those of Int8Weights, the scale and the
// shift of the epilogue cover whole panels, and the rows of C are contiguous.
void gemm(const Context&, const MatrixA<uint8_t>& a, const int8_t* packed_b, const Requantize&,
          const RequantizeOutput& c, int64_t n);

// The epilogue of the columns from `column` on, of an element `offset` further in C.
Requantize requantize_from(Requantize, int64_t column, int64_t offset);
RequantizeOutput output_from(const RequantizeOutput&, int64_t offset);

}  // namespace dtrain::cpu
