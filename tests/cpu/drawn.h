// Numbers for tests of kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "dtrain/core/rng.h"
#include "libdtrain/cpu/elements.h"

namespace dtrain {

// From -1 to 1; another stream gives others.
inline std::vector<float> drawn(int64_t count, uint64_t stream) {
  RandomStream draws(7, stream);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = draws.uniform(-1, 1);
  return values;
}

// The values as T, float or Bf16, stores them, and the values that are stored.
template <class T>
std::vector<T> elements_of(const std::vector<float>& values) {
  std::vector<T> elements;
  for (const float value : values) elements.push_back(cpu::to_element<T>(value));
  return elements;
}
template <class T>
std::vector<float> values_of(const std::vector<T>& elements) {
  return {elements.begin(), elements.end()};
}

}  // namespace dtrain
