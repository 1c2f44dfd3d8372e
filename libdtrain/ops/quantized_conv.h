// Convolutions, and by them linear layers, of tapes that infer in int8 (PreparedWeights::quantize), on a CPU: filters
// are whole numbers from -127 to 127 with a scale for each output channel, activations bytes with a scale for each
// tensor, sums exact. The references are the same layers of f32 on what the bytes and whole numbers stand for.
#pragma once

#include "libdtrain/ops/inferred_conv.h"

namespace dtrain {

struct QuantizedLayer;

// Whether a layer with weights of this shape, [k, r, s, c] or [out, in], can compute in int8.
bool fits_int8(const Shape& w);
// Whether images of so many channels can be given to it as bytes.
bool may_be_bytes(int64_t channels);

// x and the end's residual are bytes of the layer's forms, or f32; y is bytes where the layer has a form for it, else
// f32. `end` as for inferred_conv.
Tensor quantized_conv(Tape& tape, const Tensor& x, const Tensor& w, const Conv2dOptions& options,
                      const QuantizedLayer& layer, const InferredEnd& end);

}  // namespace dtrain
