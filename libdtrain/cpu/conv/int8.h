// int8 convolution for inference: symmetric weights with a scale for each output channel, quantised and packed once;
// asymmetric uint8 activations with one scale; sums of 32 bits, which are exact; a requantising epilogue.
#pragma once

#include <vector>

#include "libdtrain/cpu/conv/conv_shape.h"
#include "libdtrain/cpu/kernels/gemm_u8s8.h"

namespace dtrain::cpu {

inline int64_t round_up_to_quads(int64_t channels) { return (channels + kQuad - 1) / kQuad * kQuad; }
// Whether sums over so many taps and channels fit 32 bits.
inline bool int8_weights_fit(int64_t taps, int64_t channels) {
  return taps * round_up_to_quads(channels) <= kMaxInt8Depth;
}

// w [k, r, s, c], filter k multiplied by scale[k] (`scale` empty: by 1), as integers times scales()[k]; see
// quantize_filter. One group.
class Int8Weights {
 public:
  Int8Weights(Context&, const ConvShape&, const float* w, const std::vector<float>& scale);

  // Micro-panels [k / width][r * s * channels / 4][width][4], zeros where there is no channel or filter.
  const int8_t* packed() const { return static_cast<const int8_t*>(packed_.raw()); }
  int64_t channels() const { return channels_; }                // c, rounded up to quads
  const std::vector<float>& scales() const { return scales_; }  // [k]
  const std::vector<int32_t>& sums() const { return sums_; }    // [k], of the integers of each filter

 private:
  int64_t channels_;
  Tensor packed_;
  std::vector<float> scales_;
  std::vector<int32_t> sums_;
};

// Activations: bytes, each standing for (byte - zero) * scale, or floats that are quantised so first; one of the two
// pointers is null. Bytes have a multiple of 4 channels.
struct Int8Input {
  const uint8_t* bytes;
  const float* floats;
  float scale;
  uint8_t zero;
};

// y [n, p, q, k] = epilogue(x * weights); scale and shift of the epilogue cover whole panels.
struct Int8Operands {
  Int8Input x;
  const Int8Weights* weights;
  Requantize epilogue;
  RequantizeOutput y;
};

template <bool kAmx>
void int8_conv(Context&, const ConvShape&, const Int8Operands&);

}  // namespace dtrain::cpu
