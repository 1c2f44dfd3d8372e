// Gradients of a convolution whose output gradient is row-sparse: most pixels of dy are zero, as for a loss over a
// sample of an image's cells. The nonzero rows are gathered and multiplied in f32. T is float or Bf16.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "libdtrain/cpu/conv/conv_shape.h"

namespace dtrain::cpu {

// Whether the shape fills panels and has enough products in a row, and dy enough rows, for sparsity to pay.
bool sparse_grad_supports(const Context&, const ConvShape&);

// The rows of dy [n * p * q, k] that are not all zero, ascending, where they are few enough for these gradients to be
// faster than dense ones; nothing where they are not. A dense dy is recognised by a sample of its rows.
template <class T>
std::optional<std::vector<int64_t>> nonzero_rows(const ConvShape&, const T* dy);

// From these rows of dy, stored or added. Sums are f32; a dx of bf16 is rounded once.
template <class T>
void sparse_dgrad(Context&, const ConvShape&, const std::vector<int64_t>& rows, const T* dy, const T* w, T* dx,
                  bool add);
template <class T>
void sparse_wgrad(Context&, const ConvShape&, const std::vector<int64_t>& rows, const T* x, const T* dy, float* dw,
                  bool add);

}  // namespace dtrain::cpu
