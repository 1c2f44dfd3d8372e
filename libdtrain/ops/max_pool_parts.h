// What max-pooling is to the ops that it is a part of, on a CPU. T is float or Bf16.
#pragma once

#include <cstdint>
#include <vector>

#include "libdtrain/core/context.h"
#include "libdtrain/ops/pool_math.h"

namespace dtrain::cpu {

// Rows [begin, end) of a pooled image, into y and `winners`, which may be null, [n, p, q, c] both. Row `first` of the
// image lies at `rows`.
template <class T>
void max_pool_rows(const Context&, const PoolGeometry&, const T* rows, int64_t first, int64_t image, int64_t begin,
                   int64_t end, T* y, uint8_t* winners);

// The windows that cover each column.
std::vector<PoolRange> covering_columns(const PoolGeometry&);
// What windows give the pixels [begin, end) of all images that they cover, at `dx`, stored or added.
template <class T>
void unpool_pixels(const Context&, const PoolGeometry&, const std::vector<PoolRange>& covering, const T* dy,
                   const uint8_t* winners, int64_t begin, int64_t end, T* dx, bool add);

}  // namespace dtrain::cpu
