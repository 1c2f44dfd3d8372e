// Elements of f32 and of bf16, for code that is written once for both.
#pragma once

#include <type_traits>

#include "dtrain/core/types.h"

namespace dtrain::cpu {

// Calls use(T()) for the type T of the elements, float or Bf16.
template <class Use>
void with_elements(DType dtype, const Use& use) {
  if (dtype == DType::bf16)
    use(Bf16());
  else
    use(float());
}

// A sum as an element of T, rounded to nearest.
template <class T>
T to_element(float value) {
  if constexpr (std::is_same_v<T, Bf16>)
    return to_bf16(value);
  else
    return value;
}

}  // namespace dtrain::cpu
