// QuantizedLayer: int8 quantisation of a layer's activations.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace dtrain {

// Affine quantisation to u8: value = (byte - zero) * scale. Zero point 0 is for non-negative tensors: negative values
// saturate at 0, which fuses a relu.
struct QuantParams {
  float scale = 0;
  uint8_t zero = 0;
  bool operator==(const QuantParams&) const = default;
};

struct QuantizedLayer {
  QuantParams x{};                             // input, quantised from f32 if needed
  std::optional<QuantParams> residual{}, y{};  // nullopt: f32
  bool operator==(const QuantizedLayer&) const = default;
};

// Keyed by the address of the layer's weights, Parameter::compute.
using QuantizedLayers = std::map<const void*, QuantizedLayer>;

}  // namespace dtrain
