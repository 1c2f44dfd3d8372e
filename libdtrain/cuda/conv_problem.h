// ConvProblem: a convolution in plain numbers, what a plan is chosen for and found by; and the choice itself.
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

#include "libdtrain/core/types.h"

namespace dtrain::cuda {

enum class ConvKind : int64_t {
  forward,             // y from x and w
  forward_bias,        // y + bias[k], in the epilogue
  forward_statistics,  // y, and per channel the sums of y and of y * y
  dgrad,               // dx from dy and w
  dgrad_add,           // dx += that
  wgrad,               // dw from x and dy
  // The images are those that a batch norm with relu is still to be applied to.
  normalized_forward,  // as forward_statistics, of relu(x * scale + shift) made as x is read
  normalized_wgrad,    // dw from the same and dy
  normalized_dgrad,    // dx after relu's gate, and what the batch norm's gradient starts from
};
inline constexpr int kConvKinds = 9;

// Members of 64 bits only, so that there is no padding and equal problems have equal bytes.
struct ConvProblem {
  ConvKind kind;
  int64_t dtype;         // the DType of images and filters
  int64_t output_dtype;  // that of what the convolution writes: f32 for dw where the library can, else dtype
  int64_t n, h, w, c;
  int64_t k, r, s;
  int64_t p, q;
  int64_t stride_h, stride_w, dilation_h, dilation_w;
  int64_t pad_top, pad_bottom, pad_left, pad_right;
  int64_t groups;
  int64_t alignment;      // bytes that every address is a multiple of, 16 at most
  int64_t tf32;           // 1: f32 inputs may be rounded to 10 bits of mantissa
  int64_t deterministic;  // 1: only what gives the same bits in every run

  bool operator==(const ConvProblem& other) const { return std::memcmp(this, &other, sizeof other) == 0; }
};
static_assert(std::has_unique_object_representations_v<ConvProblem>);

// One word that tells problems apart for a person and in a plan file:
// "dgrad:bf16:n256:h56x56:c64:k64:r3x3:s1x1:d1x1:p1,1,1,1:g1", then what differs from the usual.
std::string name_of(const ConvProblem& problem);

// cuDNN's view of a tensor: extents in the order n, c, h, w (k, c / groups, r, s of filters) and the strides of NHWC.
struct TensorLayout {
  std::array<int64_t, 4> extents, strides;
};
TensorLayout channels_last(int64_t n, int64_t c, int64_t h, int64_t w);
TensorLayout image_layout(const ConvProblem& problem);   // x, dx
TensorLayout filter_layout(const ConvProblem& problem);  // w, dw
TensorLayout output_layout(const ConvProblem& problem);  // y, dy

// One way to run a problem: an engine of cuDNN and its settings.
struct EngineChoice {
  int64_t engine = 0;
  std::vector<std::pair<int64_t, int64_t>> knobs;  // type, value; ascending
  bool operator==(const EngineChoice&) const = default;
};
// "62;2=4;13=0"
std::string to_text(const EngineChoice& choice);
// Throws Error(Fault::resource) for what to_text() did not write.
EngineChoice parse_choice(const std::string& text);

}  // namespace dtrain::cuda

template <>
struct std::hash<dtrain::cuda::ConvProblem> {
  size_t operator()(const dtrain::cuda::ConvProblem& problem) const {
    return std::hash<std::string_view>()({reinterpret_cast<const char*>(&problem), sizeof problem});
  }
};
