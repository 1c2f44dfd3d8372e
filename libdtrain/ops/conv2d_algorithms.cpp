#include "libdtrain/ops/conv2d_algorithms.h"

#include "libdtrain/cpu/conv/algorithms.h"
#include "libdtrain/cpu/conv/bn_fused_grad.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/ops/conv2d_kernels.h"

namespace dtrain {
namespace {

constexpr const char* kNotHere = ", which is forced, does not compute it";

template <class List>
std::vector<Conv2dAlgorithm> described(const Context& context, const cpu::ConvShape& o, const List& list) {
  using Kind = cpu::Verdict::Kind;
  std::vector<Conv2dAlgorithm> all;
  const auto* const forced = cpu::forced_algorithm(context, o, list);
  const char* first = nullptr;
  for (const auto& one : list) {
    const cpu::Verdict verdict = one.verdict(context, o);
    Conv2dAlgorithm& row = all.emplace_back(Conv2dAlgorithm{one.name, false, verdict.reason ? verdict.reason : ""});
    const bool runs = forced ? &one == forced : verdict.applies() && !first;
    if (runs && one.needs_nonzero_rows) {
      row.taken = forced != nullptr;
      row.reason = "only if most rows of the gradient are zero";
    } else if (runs) {
      row.taken = true;
      row.reason = context.conv_algorithm().empty() || forced ? "" : context.conv_algorithm() + kNotHere;
      first = one.name;
    } else if (forced ? verdict.kind != Kind::unsupported : verdict.applies()) {
      row.reason = forced ? concat(forced->name, " is forced") : concat(first, " comes first");
    }
  }
  return all;
}

std::vector<Conv2dAlgorithm> of_training(const Context& context, const cpu::ConvShape& o, cpu::ConvPass pass,
                                         DType dtype) {
  return dtype == DType::bf16 ? described(context, o, cpu::conv_algorithms<Bf16>(pass))
                              : described(context, o, cpu::conv_algorithms<float>(pass));
}

// Grouped convolutions, and those of bf16 without instructions for it, are computed as in training.
std::vector<Conv2dAlgorithm> of_inference(const Context& context, const cpu::ConvShape& o, DType dtype) {
  if (o.groups != 1 || (dtype == DType::bf16 && !context.kernels().capabilities.bf16))
    return of_training(context, o, cpu::ConvPass::forward, dtype);
  if (dtype == DType::u8) return described(context, o, cpu::int8_algorithms());
  if (dtype == DType::f32) return described(context, o, cpu::inference_algorithms<float>());
  return described(context, o, cpu::inference_algorithms<Bf16>());
}

std::vector<Conv2dAlgorithm> of_bn_grad(const Context& context, const cpu::ConvShape& o, DType dtype) {
  const char* const declined = cpu::bn_fused_grads_declined(context, o, dtype);
  return {{"bn_fused_grad", !declined, declined ? declined : ""},
          {"wgrad, then dgrad", declined != nullptr, declined ? "" : "bn_fused_grad comes first"}};
}

}  // namespace

std::vector<std::string> conv2d_passes() { return {"forward", "dgrad", "wgrad", "inference", "bn_grad"}; }

std::vector<std::string> conv2d_algorithm_names() { return cpu::conv_algorithm_names(); }

std::vector<Conv2dAlgorithm> conv2d_algorithms(const Context& context, const std::string& pass, const Shape& x,
                                               const Shape& w, const Conv2dOptions& options, DType dtype) {
  const cpu::ConvShape o = cpu::shape_of(x, w, conv2d_shape(x, w, options), options);
  const bool inference = pass == "inference";
  DT_CHECK(dtype == DType::f32 || dtype == DType::bf16 || (inference && dtype == DType::u8),
           "conv2d_algorithms: ", pass, " of ", dtype, ": expected f32, bf16", inference ? ", u8" : "");
  DT_CHECK(dtype != DType::u8 || o.groups == 1, "conv2d_algorithms: int8 of ", o.groups, " groups, expected one");
  if (inference) return of_inference(context, o, dtype);
  if (pass == "bn_grad") return of_bn_grad(context, o, dtype);
  for (const auto& [name, kind] : {std::pair{"forward", cpu::ConvPass::forward},
                                   std::pair{"dgrad", cpu::ConvPass::dgrad}, std::pair{"wgrad", cpu::ConvPass::wgrad}})
    if (pass == name) return of_training(context, o, kind, dtype);
  throw Error(concat("conv2d_algorithms: pass \"", pass, "\": expected forward, dgrad, wgrad, inference or bn_grad"));
}

}  // namespace dtrain
