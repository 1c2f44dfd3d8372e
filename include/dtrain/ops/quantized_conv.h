// int8 convolutions and linear layers, of tapes that infer in int8 (PreparedWeights::quantize), on a CPU: symmetric
// weights from -127 to 127 with a scale for each output channel, asymmetric uint8 activations with a scale for each
// tensor, exact sums. The reference is the same layer in f32 on the dequantised values.
#pragma once

#include "dtrain/ops/inferred_conv.h"

namespace dtrain {

struct QuantizedLayer;

// Whether a layer with weights of this shape, [k, r, s, c] or [out, in], can compute in int8.
bool fits_int8(const Shape& w);
// Whether images of so many channels can be its input as uint8.
bool may_be_bytes(int64_t channels);

// x and the residual are uint8 by the layer's quantisation parameters, or f32; y is uint8 where the layer has
// parameters for it, else f32. `end` as for inferred_conv.
Tensor quantized_conv(Tape& tape, const Tensor& x, const Tensor& w, const Conv2dOptions& options,
                      const QuantizedLayer& layer, const InferenceEpilogue& end);

}  // namespace dtrain
