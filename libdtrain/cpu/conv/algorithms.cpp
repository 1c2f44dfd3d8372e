#include "libdtrain/cpu/conv/algorithms.h"

#include <algorithm>

#include "libdtrain/core/context.h"
#include "libdtrain/core/profiler.h"
#include "libdtrain/cpu/conv/depthwise.h"
#include "libdtrain/cpu/conv/im2col.h"
#include "libdtrain/cpu/conv/implicit_gemm.h"
#include "libdtrain/cpu/conv/onednn.h"
#include "libdtrain/cpu/conv/sparse_grad.h"
#include "libdtrain/cpu/conv/verdicts.h"
#include "libdtrain/cpu/conv/winograd.h"
#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/gemm/gemm_tn.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/onednn/run.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"

namespace dtrain::cpu {
namespace {

// Typed pointers of operands.
template <class T>
struct Typed {
  const T *x, *w, *dy;
  T* out;

  explicit Typed(const ConvOperands& o)
      : x(static_cast<const T*>(o.x)),
        w(static_cast<const T*>(o.w)),
        dy(static_cast<const T*>(o.dy)),
        out(static_cast<T*>(o.out)) {}
};

template <class T>
void depthwise_forward(Context& context, const ConvShape& o, const ConvOperands& a) {
  const Typed<T> t(a);
  depthwise_forward(context, o, t.x, t.w, a.bias, t.out);
}
template <class T>
void depthwise_dgrad(Context& context, const ConvShape& o, const ConvOperands& a) {
  const Typed<T> t(a);
  depthwise_dgrad(context, o, t.dy, t.w, t.out, a.add);
}
template <class T>
void depthwise_wgrad(Context& context, const ConvShape& o, const ConvOperands& a) {
  const Typed<T> t(a);
  depthwise_wgrad(context, o, t.x, t.dy, static_cast<float*>(a.out), a.add);
}

template <class T>
void winograd_forward(Context& context, const ConvShape& o, const ConvOperands& a) {
  const Typed<T> t(a);
  winograd_forward(context, *winograd_shape(o), t.x, t.w, a.bias, t.out, a.statistics);
}
template <class T>
void winograd_dgrad(Context& context, const ConvShape& o, const ConvOperands& a) {
  const Typed<T> t(a);
  winograd_dgrad(context, *winograd_shape(o), t.dy, t.w, t.out, a.add);
}
template <class T>
void winograd_wgrad(Context& context, const ConvShape& o, const ConvOperands& a) {
  const Typed<T> t(a);
  winograd_wgrad(context, *winograd_shape(o), t.x, t.dy, static_cast<float*>(a.out), a.add);
}

template <class T, bool kAmx = false>
void implicit_gemm_forward(Context& context, const ConvShape& o, const ConvOperands& a) {
  const Typed<T> t(a);
  const Scratch<T> packed(context, packed_weight_elements<T>(context, o));
  pack_weights(context, o, t.w, packed.data());
  implicit_gemm<T>(context, o, t.x, packed.data(), {.bias = a.bias}, t.out, kAmx, a.statistics);
}
template <class T, bool kAmx = false>
void implicit_gemm_dgrad(Context& context, const ConvShape& o, const ConvOperands& a) {
  const Typed<T> t(a);
  implicit_gemm_dgrad(context, o, t.dy, t.w, t.out, a.add, kAmx);
}
template <class T>
void implicit_gemm_wgrad(Context& context, const ConvShape& o, const ConvOperands& a) {
  const Typed<T> t(a);
  const Tensor zeros = context.zeros({o.c}, dtype_of<T>());
  gemm_tn<T>(context, im2col(o, t.x, zeros.data<T>()), {t.dy, o.k}, static_cast<float*>(a.out), a.add);
}

template <class T>
void sparse_dgrad(Context& context, const ConvShape& o, const ConvOperands& a) {
  const Typed<T> t(a);
  sparse_dgrad(context, o, *a.nonzero_rows, t.dy, t.w, t.out, a.add);
}
template <class T>
void sparse_wgrad(Context& context, const ConvShape& o, const ConvOperands& a) {
  const Typed<T> t(a);
  sparse_wgrad(context, o, *a.nonzero_rows, t.x, t.dy, static_cast<float*>(a.out), a.add);
}

template <class T>
void onednn_forward(Context& context, const ConvShape& o, const ConvOperands& a) {
  onednn_conv(context, o, dtype_of<T>(), a.x, a.w, a.bias, a.out);
}
template <class T>
void onednn_dgrad(Context& context, const ConvShape& o, const ConvOperands& a) {
  onednn_dgrad(context, o, dtype_of<T>(), a.dy, a.w, a.out, a.add);
}
template <class T>
void onednn_wgrad(Context& context, const ConvShape& o, const ConvOperands& a) {
  onednn_wgrad(context, o, dtype_of<T>(), a.x, a.dy, static_cast<float*>(a.out), a.add);
}

// A bf16 operand as f32, and back; null where the operand is.
class Widened {
 public:
  Widened(Context& context, const void* from, int64_t count)
      : memory_(context, from ? count : 0), data_(from ? memory_.data() : nullptr) {
    if (from) convert_elements(static_cast<const Bf16*>(from), count, data_);
  }
  float* data() const { return data_; }

 private:
  Scratch<float> memory_;
  float* data_;
};

// Computes in f32 what the instruction set has no bf16 for.
template <ConvPass kPass>
void run_in_f32(Context& context, const ConvShape& o, const ConvOperands& a) {
  const int64_t images = o.n * o.h * o.w * o.c, results = o.n * o.p * o.q * o.k,
                weights = o.k * o.r * o.s * o.c / o.groups;
  const Widened x(context, a.x, images), w(context, a.w, weights), dy(context, a.dy, results);
  const bool narrows = kPass != ConvPass::wgrad;  // dw is f32
  const int64_t count = kPass == ConvPass::forward ? results : images;
  const Scratch<float> out(context, narrows ? count : 0);
  if (narrows && a.add) convert_elements(static_cast<const Bf16*>(a.out), count, out.data());
  run_conv(context, kPass, DType::f32, o,
           {.x = x.data(),
            .w = w.data(),
            .dy = dy.data(),
            .bias = a.bias,
            .out = narrows ? out.data() : a.out,
            .add = a.add,
            .dense = true});
  if (narrows) convert_elements(out.data(), count, static_cast<Bf16*>(a.out));
}

template <class T>
void winograd_inference(Context& context, const ConvShape& o, const InferenceOperands<T>& a) {
  winograd_forward(context, *winograd_shape(o), a.x, a.weights->winograd(context), a.epilogue, a.y);
}
// What AMX writes is soon read again: it keeps y in the caches.
template <class T, bool kAmx = false>
void implicit_gemm_inference(Context& context, const ConvShape& o, const InferenceOperands<T>& a) {
  implicit_gemm<T>(context, o, a.x, a.weights->packed(context).template data<T>(), a.epilogue, a.y, kAmx, nullptr,
                   !kAmx);
}

constexpr ConvAlgorithm kForwardF32[] = {
    {"depthwise", depthwise_verdict, depthwise_forward<float>},
    {"winograd", winograd_forward_verdict<float>, winograd_forward<float>, true},
    {"implicit_gemm", implicit_gemm_forward_verdict<float>, implicit_gemm_forward<float>, true},
    {"onednn", onednn_verdict<float>, onednn_forward<float>},
};
constexpr ConvAlgorithm kForwardBf16[] = {
    {"depthwise", depthwise_verdict, depthwise_forward<Bf16>},
    {"implicit_gemm_amx", implicit_gemm_forward_verdict<Bf16, true>, implicit_gemm_forward<Bf16, true>, true},
    {"winograd", winograd_forward_verdict<Bf16>, winograd_forward<Bf16>, true},
    {"implicit_gemm", implicit_gemm_forward_verdict<Bf16>, implicit_gemm_forward<Bf16>, true},
    {"onednn", onednn_verdict<Bf16>, onednn_forward<Bf16>},
    {"in_f32", always, run_in_f32<ConvPass::forward>},
};
constexpr ConvAlgorithm kDgradF32[] = {
    {"depthwise", depthwise_verdict, depthwise_dgrad<float>},
    {"sparse_grad", sparse_verdict, sparse_dgrad<float>},
    {"winograd", winograd_grad_verdict<float>, winograd_dgrad<float>},
    {"implicit_gemm", implicit_gemm_grad_verdict<float>, implicit_gemm_dgrad<float>},
    {"onednn", onednn_verdict<float>, onednn_dgrad<float>},
};
constexpr ConvAlgorithm kDgradBf16[] = {
    {"depthwise", depthwise_verdict, depthwise_dgrad<Bf16>},
    {"sparse_grad", sparse_verdict, sparse_dgrad<Bf16>},
    {"implicit_gemm_amx", implicit_gemm_grad_verdict<Bf16, true>, implicit_gemm_dgrad<Bf16, true>},
    {"winograd", winograd_grad_verdict<Bf16>, winograd_dgrad<Bf16>},
    {"implicit_gemm", implicit_gemm_grad_verdict<Bf16>, implicit_gemm_dgrad<Bf16>},
    {"onednn", onednn_verdict<Bf16>, onednn_dgrad<Bf16>},
    {"in_f32", always, run_in_f32<ConvPass::dgrad>},
};
constexpr ConvAlgorithm kWgradF32[] = {
    {"depthwise", depthwise_verdict, depthwise_wgrad<float>},
    {"sparse_grad", sparse_verdict, sparse_wgrad<float>},
    {"winograd", winograd_grad_verdict<float>, winograd_wgrad<float>},
    {"implicit_gemm", implicit_gemm_wgrad_verdict<float>, implicit_gemm_wgrad<float>},
    {"onednn", onednn_verdict<float>, onednn_wgrad<float>},
};
constexpr ConvAlgorithm kWgradBf16[] = {
    {"depthwise", depthwise_verdict, depthwise_wgrad<Bf16>},
    {"sparse_grad", sparse_verdict, sparse_wgrad<Bf16>},
    {"winograd", winograd_grad_verdict<Bf16>, winograd_wgrad<Bf16>},
    {"implicit_gemm", implicit_gemm_wgrad_verdict<Bf16>, implicit_gemm_wgrad<Bf16>},
    {"onednn", onednn_verdict<Bf16>, onednn_wgrad<Bf16>},
    {"in_f32", always, run_in_f32<ConvPass::wgrad>},
};
constexpr Algorithm<InferenceOperands<float>> kInferenceF32[] = {
    {"winograd", winograd_inference_verdict<float>, winograd_inference<float>},
    {"implicit_gemm", always, implicit_gemm_inference<float>},
};
constexpr Algorithm<InferenceOperands<Bf16>> kInferenceBf16[] = {
    {"implicit_gemm_amx", amx_verdict, implicit_gemm_inference<Bf16, true>},
    {"winograd", winograd_inference_verdict<Bf16>, winograd_inference<Bf16>},
    {"implicit_gemm", bf16_verdict, implicit_gemm_inference<Bf16>},
};
constexpr Algorithm<Int8Operands> kInt8[] = {
    {"implicit_gemm_amx", amx_verdict, int8_conv<true>},
    {"implicit_gemm", no_amx_verdict, int8_conv<false>},
};

// Dgrad and wgrad look at the values of dy before they choose a sparse algorithm.
bool is_sparse(const char* name) { return std::string_view(name) == "sparse_grad"; }

// The forced algorithm, else the first that applies.
template <class Operands>
const Algorithm<Operands>* choose(const Context& context, const ConvShape& o, std::span<const Algorithm<Operands>> list,
                                  bool skip_sparse) {
  const auto* const forced = forced_algorithm(context, o, list);
  if (forced && !(skip_sparse && is_sparse(forced->name))) return forced;
  for (const auto& one : list)
    if (!(skip_sparse && is_sparse(one.name)) && one.verdict(context, o).applies()) return &one;
  throw Error("no algorithm computes this convolution");
}

}  // namespace

std::span<const ConvAlgorithm> conv_algorithms(ConvPass pass, DType dtype) {
  const bool bf16 = dtype == DType::bf16;
  using List = std::span<const ConvAlgorithm>;
  switch (pass) {
    case ConvPass::forward:
      return bf16 ? List(kForwardBf16) : List(kForwardF32);
    case ConvPass::dgrad:
      return bf16 ? List(kDgradBf16) : List(kDgradF32);
    case ConvPass::wgrad:
      break;
  }
  return bf16 ? List(kWgradBf16) : List(kWgradF32);
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

bool run_conv(Context& context, ConvPass pass, DType dtype, const ConvShape& o, const ConvOperands& operands) {
  const std::span<const ConvAlgorithm> list = conv_algorithms(pass, dtype);
  ConvOperands own = operands;
  const ConvAlgorithm* algorithm = choose(context, o, list, operands.dense);
  std::optional<std::vector<int64_t>> rows;
  if (is_sparse(algorithm->name)) {
    with_elements(dtype, [&]<class T>(T) { rows = nonzero_rows(o, static_cast<const T*>(own.dy)); });
    if (rows)
      own.nonzero_rows = &*rows;
    else
      algorithm = choose(context, o, list, true);
  }
  const bool fuses = algorithm->fuses_statistics && o.k % context.kernels().gemm.columns == 0;
  if (!fuses) own.statistics = nullptr;
  const KernelSpan span(context.profiler(), algorithm->name);
  algorithm->run(context, o, own);
  return own.statistics != nullptr;
}

template <class T>
void run_inference_conv(Context& context, const ConvShape& o, const InferenceOperands<T>& operands) {
  const auto* const algorithm = choose(context, o, inference_algorithms<T>(), false);
  const KernelSpan span(context.profiler(), algorithm->name);
  algorithm->run(context, o, operands);
}
template void run_inference_conv(Context&, const ConvShape&, const InferenceOperands<float>&);
template void run_inference_conv(Context&, const ConvShape&, const InferenceOperands<Bf16>&);

void run_int8_conv(Context& context, const ConvShape& o, const Int8Operands& operands) {
  const auto* const algorithm = choose(context, o, int8_algorithms(), false);
  const KernelSpan span(context.profiler(), algorithm->name);
  algorithm->run(context, o, operands);
}

std::vector<std::string> conv_algorithm_names() {
  std::vector<std::string> names{"bn_fused_grad"};
  for (const ConvPass pass : {ConvPass::forward, ConvPass::dgrad, ConvPass::wgrad})
    for (const ConvAlgorithm& one : conv_algorithms(pass, DType::bf16))
      if (std::find(names.begin(), names.end(), one.name) == names.end()) names.emplace_back(one.name);
  return names;
}

}  // namespace dtrain::cpu
