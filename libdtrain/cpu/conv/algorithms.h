// Which algorithm computes a convolution: one ordered list for each pass and type, from which the first that applies is
// taken.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "dtrain/core/context.h"
#include "libdtrain/cpu/conv/algorithm.h"
#include "libdtrain/cpu/conv/inference.h"
#include "libdtrain/cpu/conv/int8.h"

namespace dtrain::cpu {

enum class ConvPass : uint8_t { forward, dgrad, wgrad };

template <class Operands>
struct Algorithm {
  const char* name;
  Verdict (*verdict)(const Context&, const ConvShape&);
  void (*run)(Context&, const ConvShape&, const Operands&);
  bool fuses_statistics = false;
  bool needs_nonzero_rows = false;  // declines gradients of which too few rows are zero
};
template <class T>
using ConvAlgorithm = Algorithm<ConvOperands<T>>;

// In the order of preference; the last one takes every shape. T: float or Bf16.
template <class T>
std::span<const ConvAlgorithm<T>> conv_algorithms(ConvPass);
// The same for inference, whose weights are packed once, and whose epilogue is fused. One group.
template <class T>
std::span<const Algorithm<InferenceOperands<T>>> inference_algorithms();
std::span<const Algorithm<Int8Operands>> int8_algorithms();

// Runs the first algorithm that applies, or the one that the context is forced to, under a profiler span of its name.
// Returns whether it has added up operands.statistics.
template <class T>
bool run_conv(Context&, ConvPass, const ConvShape&, const ConvOperands<T>&);
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
