// Convolutions of bytes for inference: filters with a scale for each output channel, made and packed once, images with
// one scale, sums of 32 bits, and an end in floats.
#pragma once

#include <vector>

#include "libdtrain/core/tensor.h"
#include "libdtrain/cpu/direct_conv.h"
#include "libdtrain/cpu/kernels/product_int8.h"

namespace dtrain::cpu {

inline int64_t whole_quads(int64_t channels) { return (channels + kQuad - 1) / kQuad * kQuad; }
// Whether filters of so many taps and channels can be of bytes.
inline bool byte_filters_fit(int64_t taps, int64_t channels) {
  return taps * whole_quads(channels) <= kMostByteProducts;
}

// w [k, r, s, c], each of the k multiplied by its scale (`scale` empty: 1), as whole numbers times scales()[k], see
// rounded_filter(). One group.
class ByteFilters {
 public:
  ByteFilters(Context&, const ConvShape& shape, const float* w, const std::vector<float>& scale);

  // [k / width][r * s * channels / 4][width][4], zeros where there is no channel or filter.
  const int8_t* panels() const { return static_cast<const int8_t*>(panels_.raw()); }
  int64_t channels() const { return channels_; }                // c, filled up to whole quads
  const std::vector<float>& scales() const { return scales_; }  // [k]
  const std::vector<int32_t>& sums() const { return sums_; }    // [k], of the whole numbers of each filter

 private:
  int64_t channels_;
  Tensor panels_;
  std::vector<float> scales_;
  std::vector<int32_t> sums_;
};

// Images of bytes, each (byte - zero) * scale, or floats that are made such bytes first; one of the two is null.
// Bytes have whole quads of channels.
struct ByteImages {
  const uint8_t* bytes;
  const float* floats;
  float scale;
  uint8_t zero;
};

// y [n, p, q, k] is what `end`, whose scale and shift are of whole panels, makes of the sums of products of x's bytes
// and the filters.
void byte_conv(Context&, const ConvShape&, const ByteImages& x, const ByteFilters& filters, const ByteEnd& end,
               const ByteTarget& y);

}  // namespace dtrain::cpu
