// EncodedImage: a JPEG and the resampling of its pixels, for decoding on a device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "dtrain/core/memory.h"

namespace dtrain {

// Separable resampling filter of one axis: sample i = sum over t < taps of source[first[i] + t] * weights[i * taps +
// t].
template <class Weight>
struct Filter {
  int taps = 0;
  std::vector<int> first;
  std::vector<Weight> weights;

  int count() const { return static_cast<int>(first.size()); }
  // Range of source samples read: [begin(), end()).
  int begin() const { return *std::min_element(first.begin(), first.end()); }
  int end() const { return *std::max_element(first.begin(), first.end()) + taps; }
  // Shifts the filter for a source cropped by `offset` samples at its start.
  void shift(int offset) {
    for (int& index : first) index -= offset;
  }
};

// Fraction bits of fixed-point weights for 8-bit samples: 8 bits are left for the sample, 2 for overshoot.
inline constexpr int kFilterBits = 22;

// Horizontal pass, then vertical. 8-bit samples are rounded after each.
template <class Weight>
struct Resampling {
  Filter<Weight> x, y;
};

struct EncodedImage {
  using Bytes = std::vector<std::byte, ContainerMemory<std::byte>>;

  // `memory`: of the host, preferably pinned.
  explicit EncodedImage(std::shared_ptr<Allocator> memory) : jpeg(ContainerMemory<std::byte>{std::move(memory)}) {}

  Bytes jpeg;                 // empty: nothing to decode
  int width = 0, height = 0;  // size of the whole image, which the filters index
  Resampling<float> to_f32;   // used for f32 output; the other for u8
  Resampling<int32_t> to_u8;
};

}  // namespace dtrain
