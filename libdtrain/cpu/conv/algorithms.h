// Which algorithm computes a convolution: one ordered list for each pass and type, from which the first that applies is
// taken.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libdtrain/cpu/conv/conv_shape.h"
#include "libdtrain/cpu/conv/inference.h"
#include "libdtrain/cpu/conv/int8.h"
#include "libdtrain/cpu/conv/verdicts.h"
#include "libdtrain/cpu/gemm/statistics.h"

namespace dtrain::cpu {

enum class ConvPass : uint8_t { forward, dgrad, wgrad };

// Tensors of a pass in training; images and weights are of the list's type.
struct ConvOperands {
  const void *x = nullptr, *w = nullptr, *dy = nullptr;  // those that the pass reads
  const float* bias = nullptr;                           // forward: [k], or null
  void* out = nullptr;                                   // y, dx, or dw, which is f32
  bool add = false;                                      // dx and dw: added to what is there
  FusedStatistics* statistics = nullptr;                 // forward: of y, for algorithms that fuse them; or null
  const std::vector<int64_t>* nonzero_rows = nullptr;    // of dy, for sparse_grad
  bool dense = false;                                    // dy is known not to be row-sparse
};

template <class Operands>
struct Algorithm {
  const char* name;
  Verdict (*verdict)(const Context&, const ConvShape&);
  void (*run)(Context&, const ConvShape&, const Operands&);
  bool fuses_statistics = false;
};
using ConvAlgorithm = Algorithm<ConvOperands>;

// In the order of preference; the last one takes every shape. `dtype`: f32 or bf16.
std::span<const ConvAlgorithm> conv_algorithms(ConvPass, DType);
// The same for inference, whose weights are packed once, and whose epilogue is fused. One group.
template <class T>
std::span<const Algorithm<InferenceOperands<T>>> inference_algorithms();
std::span<const Algorithm<Int8Operands>> int8_algorithms();

// Runs the first algorithm that applies, or the one that the context is forced to, under a profiler span of its name.
// Returns whether it has added up operands.statistics.
bool run_conv(Context&, ConvPass, DType, const ConvShape&, const ConvOperands&);
template <class T>
void run_inference_conv(Context&, const ConvShape&, const InferenceOperands<T>&);
void run_int8_conv(Context&, const ConvShape&, const Int8Operands&);

// Names of all algorithms, each once.
std::vector<std::string> conv_algorithm_names();

// The algorithm that the context is forced to, if it is in the list and computes the shape; else null.
template <class Operands>
const Algorithm<Operands>* forced_algorithm(const Context& context, const ConvShape& o,
                                            std::span<const Algorithm<Operands>> list) {
  for (const auto& one : list)
    if (one.name == context.conv_algorithm() && one.verdict(context, o).kind != Verdict::Kind::unsupported) return &one;
  return nullptr;
}

}  // namespace dtrain::cpu
