// What the convolution algorithms share: operands, and the verdict whether an algorithm is taken for a shape.
#pragma once

#include <cstdint>
#include <vector>

#include "libdtrain/cpu/conv/conv_shape.h"
#include "libdtrain/cpu/gemm/statistics.h"

namespace dtrain::cpu {

// Whether an algorithm is taken for a shape. A slower one, which another in the list beats, can still be forced.
struct Verdict {
  enum class Kind : uint8_t { applies, slower, unsupported };

  Kind kind = Kind::applies;
  const char* reason = nullptr;  // why it does not apply

  static Verdict slower(const char* why) { return {Kind::slower, why}; }
  static Verdict unsupported(const char* why) { return {Kind::unsupported, why}; }
  bool applies() const { return kind == Kind::applies; }
};

inline constexpr const char *kNoBf16 = "the instruction set has no dot products of bf16",
                            *kNoAmx = "the instruction set has no AMX", *kGroups = "for one group",
                            *kPartialPanels = "channels or filters are no multiple of the panel width";

// Tensors of a pass in training. T: float or Bf16. Forward reads x and w and writes y; dgrad reads dy and w and writes
// dx; wgrad reads x and dy and writes dw.
template <class T>
struct ConvOperands {
  const T *x = nullptr, *w = nullptr, *dy = nullptr;
  const float* bias = nullptr;  // forward: [k], or null
  T *y = nullptr, *dx = nullptr;
  float* dw = nullptr;
  bool add = false;                                    // dx and dw: added to what is there
  FusedStatistics* statistics = nullptr;               // forward: of y, for algorithms that fuse them; or null
  const std::vector<int64_t>* nonzero_rows = nullptr;  // of dy, for sparse_grad
  bool dense = false;                                  // dy is known not to be row-sparse
};

}  // namespace dtrain::cpu
