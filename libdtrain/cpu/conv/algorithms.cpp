#include "libdtrain/cpu/conv/algorithms.h"

#include <algorithm>

#include "dtrain/core/profiler.h"
#include "libdtrain/cpu/conv/depthwise.h"
#include "libdtrain/cpu/conv/implicit_gemm.h"
#include "libdtrain/cpu/conv/onednn.h"
#include "libdtrain/cpu/conv/sparse_grad.h"
#include "libdtrain/cpu/conv/winograd.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"

namespace dtrain::cpu {
namespace {

const Capabilities& capabilities(const Context& context) { return context.kernels().capabilities; }

Verdict always(const Context&, const ConvShape&) { return {}; }
Verdict bf16_verdict(const Context& context, const ConvShape&) {
  return capabilities(context).bf16 ? Verdict{} : Verdict::unsupported(kNoBf16);
}
Verdict amx_verdict(const Context& context, const ConvShape&) {
  return capabilities(context).amx ? Verdict{} : Verdict::unsupported(kNoAmx);
}
Verdict no_amx_verdict(const Context& context, const ConvShape&) {
  return capabilities(context).amx ? Verdict::slower("AMX is faster") : Verdict{};
}

// Tiles from which Winograd's transform of the weights pays in each call. In the forward pass native bf16 wins by up to
// a fifth at 256 tiles (14x14x256) and loses by as much at 784 (28x28x128).
constexpr int64_t kMinTiles = 24, kMinTilesOverBf16 = 512;
// The same where the transformed weights are kept: they are four times as large as plain ones, eight times those of
// bf16.
template <class T>
constexpr int64_t kMinTilesOfPacked = std::is_same_v<T, Bf16> ? 256 : 16;

template <class T>
Verdict winograd_verdict_of(const Context& context, const ConvShape& o, int64_t min_tiles) {
  const Verdict verdict = winograd_verdict(context, o, min_tiles);
  const bool amx = std::is_same_v<T, Bf16> && capabilities(context).amx;
  return verdict.applies() && amx ? Verdict::slower("AMX is faster than any transform") : verdict;
}
template <class T>
Verdict winograd_forward_verdict(const Context& context, const ConvShape& o) {
  const bool bf16 = std::is_same_v<T, Bf16> && capabilities(context).bf16;
  return winograd_verdict_of<T>(context, o, bf16 ? kMinTilesOverBf16 : kMinTiles);
}
template <class T>
Verdict winograd_grad_verdict(const Context& context, const ConvShape& o) {
  return winograd_verdict_of<T>(context, o, kMinTiles);
}
template <class T>
Verdict winograd_inference_verdict(const Context& context, const ConvShape& o) {
  return winograd_verdict_of<T>(context, o, kMinTilesOfPacked<T>);
}

// A bf16 operand as f32; null where the operand is.
class Widened {
 public:
  Widened(Context& context, const Bf16* from, int64_t count, bool is_read = true)
      : memory_(context, from ? count : 0), data_(from ? memory_.data() : nullptr) {
    if (from && is_read) convert_elements(from, count, data_);
  }
  float* data() const { return data_; }

 private:
  Scratch<float> memory_;
  float* data_;
};

// Computes in f32 what the instruction set has no bf16 for.
template <ConvPass kPass>
void run_in_f32(Context& context, const ConvShape& o, const ConvOperands<Bf16>& a) {
  const int64_t images = o.n * o.h * o.w * o.c, results = o.n * o.p * o.q * o.k,
                weights = o.k * o.r * o.s * o.c / o.groups;
  const Widened x(context, a.x, images), w(context, a.w, weights), dy(context, a.dy, results);
  const Widened y(context, a.y, results, false), dx(context, a.dx, images, a.add);
  run_conv<float>(context, kPass, o,
                  {.x = x.data(),
                   .w = w.data(),
                   .dy = dy.data(),
                   .bias = a.bias,
                   .y = y.data(),
                   .dx = dx.data(),
                   .dw = a.dw,
                   .add = a.add,
                   .dense = true});
  if (a.y) convert_elements(y.data(), results, a.y);
  if (a.dx) convert_elements(dx.data(), images, a.dx);
}

constexpr ConvAlgorithm<float> kForwardF32[] = {
    {"depthwise", depthwise_verdict, Depthwise<float>::forward},
    {"winograd", winograd_forward_verdict<float>, Winograd<float>::forward, true},
    {"implicit_gemm", ImplicitGemm<float>::forward_verdict, ImplicitGemm<float>::forward, true},
    {"onednn", OnednnConv<float>::verdict, OnednnConv<float>::forward},
};
constexpr ConvAlgorithm<Bf16> kForwardBf16[] = {
    {"depthwise", depthwise_verdict, Depthwise<Bf16>::forward},
    {"implicit_gemm_amx", ImplicitGemm<Bf16, true>::forward_verdict, ImplicitGemm<Bf16, true>::forward, true},
    {"winograd", winograd_forward_verdict<Bf16>, Winograd<Bf16>::forward, true},
    {"implicit_gemm", ImplicitGemm<Bf16>::forward_verdict, ImplicitGemm<Bf16>::forward, true},
    {"onednn", OnednnConv<Bf16>::verdict, OnednnConv<Bf16>::forward},
    {"in_f32", always, run_in_f32<ConvPass::forward>},
};
constexpr ConvAlgorithm<float> kDgradF32[] = {
    {"depthwise", depthwise_verdict, Depthwise<float>::dgrad},
    {"sparse_grad", sparse_verdict, SparseGrad<float>::dgrad, false, true},
    {"winograd", winograd_grad_verdict<float>, Winograd<float>::dgrad},
    {"implicit_gemm", ImplicitGemm<float>::dgrad_verdict, ImplicitGemm<float>::dgrad},
    {"onednn", OnednnConv<float>::verdict, OnednnConv<float>::dgrad},
};
constexpr ConvAlgorithm<Bf16> kDgradBf16[] = {
    {"depthwise", depthwise_verdict, Depthwise<Bf16>::dgrad},
    {"sparse_grad", sparse_verdict, SparseGrad<Bf16>::dgrad, false, true},
    {"implicit_gemm_amx", ImplicitGemm<Bf16, true>::dgrad_verdict, ImplicitGemm<Bf16, true>::dgrad},
    {"winograd", winograd_grad_verdict<Bf16>, Winograd<Bf16>::dgrad},
    {"implicit_gemm", ImplicitGemm<Bf16>::dgrad_verdict, ImplicitGemm<Bf16>::dgrad},
    {"onednn", OnednnConv<Bf16>::verdict, OnednnConv<Bf16>::dgrad},
    {"in_f32", always, run_in_f32<ConvPass::dgrad>},
};
constexpr ConvAlgorithm<float> kWgradF32[] = {
    {"depthwise", depthwise_verdict, Depthwise<float>::wgrad},
    {"sparse_grad", sparse_verdict, SparseGrad<float>::wgrad, false, true},
    {"winograd", winograd_grad_verdict<float>, Winograd<float>::wgrad},
    {"implicit_gemm", ImplicitGemm<float>::wgrad_verdict, ImplicitGemm<float>::wgrad},
    {"onednn", OnednnConv<float>::verdict, OnednnConv<float>::wgrad},
};
constexpr ConvAlgorithm<Bf16> kWgradBf16[] = {
    {"depthwise", depthwise_verdict, Depthwise<Bf16>::wgrad},
    {"sparse_grad", sparse_verdict, SparseGrad<Bf16>::wgrad, false, true},
    {"implicit_gemm_amx", ImplicitGemm<Bf16, true>::wgrad_verdict, ImplicitGemm<Bf16, true>::wgrad},
    {"winograd", winograd_grad_verdict<Bf16>, Winograd<Bf16>::wgrad},
    {"implicit_gemm", ImplicitGemm<Bf16>::wgrad_verdict, ImplicitGemm<Bf16>::wgrad},
    {"onednn", OnednnConv<Bf16>::verdict, OnednnConv<Bf16>::wgrad},
    {"in_f32", always, run_in_f32<ConvPass::wgrad>},
};
constexpr Algorithm<InferenceOperands<float>> kInferenceF32[] = {
    {"winograd", winograd_inference_verdict<float>, Winograd<float>::inference},
    {"implicit_gemm", always, ImplicitGemm<float>::inference},
};
constexpr Algorithm<InferenceOperands<Bf16>> kInferenceBf16[] = {
    {"implicit_gemm_amx", amx_verdict, ImplicitGemm<Bf16, true>::inference},
    {"winograd", winograd_inference_verdict<Bf16>, Winograd<Bf16>::inference},
    {"implicit_gemm", bf16_verdict, ImplicitGemm<Bf16>::inference},
};
constexpr Algorithm<Int8Operands> kInt8[] = {
    {"implicit_gemm_amx", amx_verdict, int8_conv<true>},
    {"implicit_gemm", no_amx_verdict, int8_conv<false>},
};

// The forced algorithm, else the first that applies. `dense`: skips those for row-sparse gradients.
template <class Operands>
const Algorithm<Operands>* choose(const Context& context, const ConvShape& o, std::span<const Algorithm<Operands>> list,
                                  bool dense) {
  const auto* const forced = forced_algorithm(context, o, list);
  if (forced && !(dense && forced->needs_nonzero_rows)) return forced;
  for (const auto& one : list)
    if (!(dense && one.needs_nonzero_rows) && one.verdict(context, o).applies()) return &one;
  throw Error("no algorithm computes this convolution");
}

template <class Operands>
void run_algorithm(Context& context, const ConvShape& o, const Operands& operands,
                   const Algorithm<Operands>& algorithm) {
  const KernelSpan span(context.profiler(), algorithm.name);
  algorithm.run(context, o, operands);
}

}  // namespace

template <>
std::span<const ConvAlgorithm<float>> conv_algorithms(ConvPass pass) {
  static constexpr std::span<const ConvAlgorithm<float>> kLists[] = {kForwardF32, kDgradF32, kWgradF32};
  return kLists[static_cast<size_t>(pass)];
}
template <>
std::span<const ConvAlgorithm<Bf16>> conv_algorithms(ConvPass pass) {
  static constexpr std::span<const ConvAlgorithm<Bf16>> kLists[] = {kForwardBf16, kDgradBf16, kWgradBf16};
  return kLists[static_cast<size_t>(pass)];
}
template <>
std::span<const Algorithm<InferenceOperands<float>>> inference_algorithms() {
  return kInferenceF32;
}
template <>
std::span<const Algorithm<InferenceOperands<Bf16>>> inference_algorithms() {
  return kInferenceBf16;
}
std::span<const Algorithm<Int8Operands>> int8_algorithms() { return kInt8; }

template <class T>
bool run_conv(Context& context, ConvPass pass, const ConvShape& o, const ConvOperands<T>& operands) {
  const std::span<const ConvAlgorithm<T>> list = conv_algorithms<T>(pass);
  ConvOperands<T> own = operands;
  const ConvAlgorithm<T>* algorithm = choose(context, o, list, operands.dense);
  std::optional<std::vector<int64_t>> rows;
  if (algorithm->needs_nonzero_rows) {
    rows = nonzero_rows(o, own.dy);
    if (rows)
      own.nonzero_rows = &*rows;
    else
      algorithm = choose(context, o, list, true);
  }
  const bool fuses = algorithm->fuses_statistics && o.k % context.kernels().gemm.columns == 0;
  if (!fuses) own.statistics = nullptr;
  run_algorithm(context, o, own, *algorithm);
  return own.statistics != nullptr;
}
template bool run_conv(Context&, ConvPass, const ConvShape&, const ConvOperands<float>&);
template bool run_conv(Context&, ConvPass, const ConvShape&, const ConvOperands<Bf16>&);

template <class T>
void run_inference_conv(Context& context, const ConvShape& o, const InferenceOperands<T>& operands) {
  run_algorithm(context, o, operands, *choose(context, o, inference_algorithms<T>(), false));
}
template void run_inference_conv(Context&, const ConvShape&, const InferenceOperands<float>&);
template void run_inference_conv(Context&, const ConvShape&, const InferenceOperands<Bf16>&);

void run_int8_conv(Context& context, const ConvShape& o, const Int8Operands& operands) {
  run_algorithm(context, o, operands, *choose(context, o, int8_algorithms(), false));
}

std::vector<std::string> conv_algorithm_names() {
  std::vector<std::string> names{"bn_fused_grad"};
  for (const ConvPass pass : {ConvPass::forward, ConvPass::dgrad, ConvPass::wgrad})
    for (const auto& one : conv_algorithms<Bf16>(pass))
      if (std::find(names.begin(), names.end(), one.name) == names.end()) names.emplace_back(one.name);
  return names;
}

}  // namespace dtrain::cpu
