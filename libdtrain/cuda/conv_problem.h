// ConvProblem: parameters of a convolution, the key of its cuDNN plan. EngineChoice: engine and knobs of the plan.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "dtrain/core/types.h"

namespace dtrain::cuda {

enum class ConvKind : int64_t {
  forward,             // y from x and w
  forward_bias,        // y + bias[k], in the epilogue
  forward_statistics,  // y, and per channel the sums of y and of y * y
  dgrad,               // dx from dy and w
  dgrad_add,           // dx += dgrad
  wgrad,               // dw from x and dy
  // Fused with a preceding batch norm and relu, which are applied in the prologue (on load).
  normalized_forward,  // forward_statistics of relu(x * scale + shift)
  normalized_wgrad,    // dw from relu(x * scale + shift) and dy
  normalized_dgrad,    // dx after relu's backward, with the reductions of the batch norm's backward
};
inline constexpr int kConvKinds = 9;

// 64-bit members only: no padding, so that equal problems compare equal byte by byte.
struct ConvProblem {
  ConvKind kind;
  int64_t dtype;         // the DType of images and filters
  int64_t output_dtype;  // DType of the result: f32 for dw where cuDNN supports it, else dtype
  int64_t n, h, w, c;
  int64_t k, r, s;
  int64_t p, q;
  int64_t stride_h, stride_w, dilation_h, dilation_w;
  int64_t pad_top, pad_bottom, pad_left, pad_right;
  int64_t groups;
  int64_t alignment;      // of every address, in bytes; at most 16
  int64_t tf32;           // 1: TF32 allowed, f32 inputs rounded to 10 bits of mantissa
  int64_t deterministic;  // 1: only engines with bitwise reproducible results

  bool operator==(const ConvProblem& other) const { return std::memcmp(this, &other, sizeof other) == 0; }
};
static_assert(std::has_unique_object_representations_v<ConvProblem>);

// Name of a problem in messages and plan files: "dgrad:bf16:n256:h56x56:c64:k64:r3x3:s1x1:d1x1:p1,1,1,1:g1", followed
// by attributes that differ from their defaults.
std::string name_of(const ConvProblem& problem);

// Tensor as cuDNN sees it: extents in the order n, c, h, w (k, c / groups, r, s of filters) with NHWC strides.
struct TensorLayout {
  std::array<int64_t, 4> extents, strides;
};
TensorLayout channels_last(int64_t n, int64_t c, int64_t h, int64_t w);
TensorLayout image_layout(const ConvProblem& problem);   // x, dx
TensorLayout filter_layout(const ConvProblem& problem);  // w, dw
TensorLayout output_layout(const ConvProblem& problem);  // y, dy

// Execution of a problem: a cuDNN engine and its knobs.
struct EngineChoice {
  int64_t engine = 0;
  std::vector<std::pair<int64_t, int64_t>> knobs;  // type, value; ascending
  bool operator==(const EngineChoice&) const = default;
};
// Format: "62;2=4;13=0", engine;knob=value;...
std::string to_text(const EngineChoice& choice);
// Throws Error(Fault::resource) for text that to_text() did not write.
EngineChoice parse_choice(const std::string& text);

}  // namespace dtrain::cuda

template <>
struct std::hash<dtrain::cuda::ConvProblem> {
  size_t operator()(const dtrain::cuda::ConvProblem& problem) const {
    return std::hash<std::string_view>()({reinterpret_cast<const char*>(&problem), sizeof problem});
  }
};
