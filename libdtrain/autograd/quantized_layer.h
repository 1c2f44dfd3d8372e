// How a layer of a model that infers in int8 reads and writes its activations.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace dtrain {

// What the bytes of a tensor stand for: (byte - zero) * scale. A zero of 0 is for what is never negative: bytes made of
// less are 0, so that a relu has nothing left to do.
struct ByteForm {
  float scale = 0;
  uint8_t zero = 0;
  bool operator==(const ByteForm&) const = default;
};

struct QuantizedLayer {
  ByteForm x{};                             // floats become such bytes first
  std::optional<ByteForm> residual{}, y{};  // nothing: floats
  bool operator==(const QuantizedLayer&) const = default;
};

// By the address of the layer's weights, that of Parameter::compute.
using QuantizedLayers = std::map<const void*, QuantizedLayer>;

}  // namespace dtrain
