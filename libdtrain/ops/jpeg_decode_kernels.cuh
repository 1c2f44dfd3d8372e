// What makes samples of decoded images.
#pragma once

#include "libdtrain/core/context.h"
#include "libdtrain/cuda/cuda.h"

namespace dtrain::cuda {

// One sample. The table of an axis is first[count], then weights[count * taps], in words of 32 bits.
struct ResamplePlan {
  const uint8_t* image = nullptr;  // RGB, row after row
  int64_t pitch = 0;               // bytes of a row
  int64_t row = 0;                 // the one of `pixels` to write
  int64_t x = 0, y = 0;            // where the tables of the axes begin
  int32_t taps_x = 0, taps_y = 0;
};

// Queues on `stream`: each of `count` plans, device memory like `tables`, makes its row of `pixels`, [n, h, w, 3] of
// f32 or u8. The weights are as EncodedImage has them for that type.
void resample(Context& context, const ResamplePlan* plans, int64_t count, const int32_t* tables, const Tensor& pixels,
              cudaStream_t stream);

}  // namespace dtrain::cuda
