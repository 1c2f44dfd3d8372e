// EncodedImage: a JPEG, and the resampling that makes a sample of its pixels, for a device to do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "libdtrain/core/memory.h"

namespace dtrain {

// One axis of a resampling: sample i is the sum over t < taps of source[first[i] + t] * weights[i * taps + t].
template <class Weight>
struct Filter {
  int taps = 0;
  std::vector<int> first;
  std::vector<Weight> weights;

  int count() const { return static_cast<int>(first.size()); }
  // Source samples that are read: [begin(), end()).
  int begin() const { return *std::min_element(first.begin(), first.end()); }
  int end() const { return *std::max_element(first.begin(), first.end()) + taps; }
  // For a source of which the first `offset` samples are left out.
  void shift(int offset) {
    for (int& index : first) index -= offset;
  }
};

// Bits of a fixed-point weight, which makes samples of 8 bits: 8 bits are left for the sample, 2 for overshoot.
inline constexpr int kFilterBits = 22;

// Across, then down. Samples of 8 bits are rounded to 8 bits after each.
template <class Weight>
struct Resampling {
  Filter<Weight> x, y;
};

struct EncodedImage {
  using Bytes = std::vector<std::byte, ContainerMemory<std::byte>>;

  // `memory` is the host's, best such as a device copies from at full speed.
  explicit EncodedImage(std::shared_ptr<Allocator> memory) : jpeg(ContainerMemory<std::byte>{std::move(memory)}) {}

  Bytes jpeg;                 // empty where there is nothing to decode
  int width = 0, height = 0;  // the size of the whole image, which the filters read
  Resampling<float> to_f32;   // the one of the two that is meant follows from the type of the samples asked for
  Resampling<int32_t> to_u8;
};

}  // namespace dtrain
