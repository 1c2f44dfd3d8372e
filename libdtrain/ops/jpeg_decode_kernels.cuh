// Resampling kernel of the GPU JPEG decoder.
#pragma once

#include "dtrain/core/context.h"
#include "libdtrain/cuda/cuda.h"

namespace dtrain::cuda {

// One sample. Table of an axis: first[count], weights[count * taps], in 32-bit words.
struct ResamplePlan {
  const uint8_t* image = nullptr;  // RGB, row-major
  int64_t pitch = 0;               // bytes per row
  int64_t row = 0;                 // row of `pixels` to write
  int64_t x = 0, y = 0;            // offsets of the axes' tables
  int32_t taps_x = 0, taps_y = 0;
};

// Enqueues on `stream`: `count` plans, in device memory like `tables`, each write their row of `pixels`, [n, h, w, 3]
// f32 or u8. Weights as in EncodedImage for that type.
void resample(Context& context, const ResamplePlan* plans, int64_t count, const int32_t* tables, const Tensor& pixels,
              cudaStream_t stream);

}  // namespace dtrain::cuda
