// Gradients of a convolution whose output gradient is row-sparse: most pixels of dy are zero, as for a loss over a
// sample of an image's cells. The nonzero rows are gathered and multiplied in f32.
#pragma once

#include <optional>

#include "libdtrain/cpu/conv/algorithm.h"

namespace dtrain::cpu {

// Applies where the shape fills panels and has enough products in a row, and dy enough rows, for sparsity to pay.
Verdict sparse_verdict(const Context&, const ConvShape&);

// The rows of dy [n * p * q, k] that are not all zero, ascending, where they are few enough for these gradients to be
// faster than dense ones; nothing where they are not. A dense dy is recognised by a sample of its rows.
template <class T>
std::optional<std::vector<int64_t>> nonzero_rows(const ConvShape&, const T* dy);

// From ConvOperands::nonzero_rows. Sums are f32; a dx of bf16 is rounded once.
template <class T>
struct SparseGrad {
  static void dgrad(Context&, const ConvShape&, const ConvOperands<T>&);
  static void wgrad(Context&, const ConvShape&, const ConvOperands<T>&);
};

}  // namespace dtrain::cpu
