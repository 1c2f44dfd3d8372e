// Max pooling by rows on a CPU, for fused ops. T is float or Bf16.
#pragma once

#include <cstdint>
#include <vector>

#include "dtrain/core/context.h"
#include "libdtrain/ops/pool_math.h"

namespace dtrain::cpu {

// Pools rows [begin, end) of output image `image` into y and `winners` (argmax within the window; may be null), both
// [n, p, q, c]. `rows` holds the input image from row `first` on, [h - first, w, c].
template <class T>
void max_pool_rows(const Context&, const PoolGeometry&, const T* rows, int64_t first, int64_t image, int64_t begin,
                   int64_t end, T* y, uint8_t* winners);

// For each input column the range of windows that cover it.
std::vector<PoolRange> covering_columns(const PoolGeometry&);
// Gradient of input pixels [begin, end), counted over all images, from dy and `winners`, both [n, p, q, c]; stored in
// dx [end - begin, c], or added. `covering`: by covering_columns.
template <class T>
void unpool_pixels(const Context&, const PoolGeometry&, const std::vector<PoolRange>& covering, const T* dy,
                   const uint8_t* winners, int64_t begin, int64_t end, T* dx, bool add);

}  // namespace dtrain::cpu
