// The gradient of a convolution's filters as one matrix product over the pixels of the output, for any stride.
#pragma once

#include <functional>
#include <vector>

#include "libdtrain/core/float16.h"
#include "libdtrain/cpu/direct_conv.h"

namespace dtrain::cpu {

// Whether the kernel takes the shape: channels and filters in whole panels, one group.
bool gemm_wgrad_supports(const Context&, const ConvShape& shape);
// Whether it takes the shape and is faster there than oneDNN: enough products per pixel to pay for the packing. Images
// of bf16 need a processor that has products of them.
bool gemm_wgrad_pays(const Context&, const ConvShape& shape, DType images);
// Whether there are enough products per pixel to pay for the packing.
bool enough_products(const ConvShape& shape);
// dw from x and dy, float or Bf16, stored or added; `chosen`: of these pixels of dy alone, where the others are zero.
template <class T>
void gemm_wgrad(Context&, const ConvShape&, const T* x, const T* dy, float* dw, bool add,
                const std::vector<int64_t>* chosen = nullptr);

// The pixels of dy, [pixels, k].
template <class T>
struct DyRows {
  const T* memory;  // all of them, or of what they are made of: read ahead
  // Makes pixels [begin, end), which stay where they are until this core asks again. Empty: `memory` has them.
  std::function<const T*(int64_t core, int64_t begin, int64_t end)> make{};

  const T* from(int64_t core, int64_t begin, int64_t end, int64_t k) const {
    return make ? make(core, begin, end) : memory + begin * k;
  }
};
// Whether gemm_wgrad takes the shape and each core adds up blocks of its own pixels, at most so many at a time. Then dy
// may be made by blocks: each pixel once, and with the same sums.
bool gemm_wgrad_goes_by_blocks(const Context&, const ConvShape& shape, DType images);
template <class T>
int64_t most_pixels_of_block();
template <class T>
void gemm_wgrad_by_blocks(Context&, const ConvShape&, const T* x, const DyRows<T>& dy, float* dw, bool add);

}  // namespace dtrain::cpu
