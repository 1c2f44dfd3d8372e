// Temporary memory of CPU arms.
#pragma once

#include <cstdint>

#include "dtrain/core/context.h"

namespace dtrain::cpu {

// An uninitialised array from the context's pool, released at the end of the scope.
template <class T>
class Scratch {
 public:
  Scratch(const Context& context, int64_t count)
      : bytes_(context.empty({count * static_cast<int64_t>(sizeof(T))}, DType::u8)) {}
  T* data() const { return static_cast<T*>(bytes_.raw()); }

 private:
  Tensor bytes_;
};

}  // namespace dtrain::cpu
