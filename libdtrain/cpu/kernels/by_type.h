// Kernels per element type.
#pragma once

#include <type_traits>

#include "dtrain/core/float16.h"

namespace dtrain::cpu {

template <template <class> class Loops>
struct ByType {
  Loops<float> f32;
  Loops<Bf16> bf16;

  template <class T>
  const Loops<T>& of() const {
    if constexpr (std::is_same_v<T, Bf16>)
      return bf16;
    else
      return f32;
  }
};

}  // namespace dtrain::cpu
