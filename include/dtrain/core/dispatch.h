// DT_DISPATCH: dispatch of an op to its cpu:: or cuda:: implementation.
#pragma once

#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>

#include "dtrain/core/context.h"
#include "dtrain/core/profiler.h"
#include "dtrain/core/thread_count.h"
#include "dtrain/core/widened.h"

namespace dtrain {

// Throws Error, naming the kernel, if a tensor in an argument is on another device than the context. Undefined tensors
// (optional ones) pass. A struct that holds tensors, or other such structs, lists them:
//   auto tensors() const { return std::tie(x, gamma); }
// Ranges are checked element by element; trivially copyable arguments hold no tensor.
template <class Argument>
void require_argument(const Context& context, const Argument& argument, const char* kernel) {
  if constexpr (std::is_same_v<Argument, Tensor>) {
    if (argument) context.require(argument, kernel);
  } else if constexpr (requires { argument.tensors(); }) {
    std::apply([&](const auto&... held) { (require_argument(context, held, kernel), ...); }, argument.tensors());
  } else if constexpr (std::ranges::range<const Argument>) {
    for (const auto& element : argument) require_argument(context, element, kernel);
  } else {
    static_assert(std::is_trivially_copyable_v<Argument>, "it may hold tensors: then its tensors() lists them");
  }
}

// Kernel bound to a context, called with its remaining arguments. Throws Error if a tensor among them is on another
// device. On a CPU it runs with the context's thread count, and kernels without bf16 support get f32 copies of bf16
// tensors (widened.h).
template <class Result, class... Arguments>
struct BoundKernel {
  Context& context;
  const char* name;
  Result (*kernel)(Context&, Arguments...);
  bool takes_bf16 = true;
  Result operator()(Arguments... arguments) const {
    (require_argument(context, arguments, name), ...);
    const KernelSpan span(context.profiler(), name);
    if (!context.is_cpu()) return kernel(context, std::forward<Arguments>(arguments)...);
    const ThreadCount threads(context.threads());
    bool narrow = false;
    if (!takes_bf16) {
      [[maybe_unused]] const auto look = [&](const Tensor& x) { narrow |= x && x.dtype() == DType::bf16; };
      (for_each_tensor(std::as_const(arguments), look), ...);
    }
    if (!narrow) return kernel(context, std::forward<Arguments>(arguments)...);
    return call_in_f32(context, kernel, std::forward<Arguments>(arguments)...);
  }
};

// Implementation for the device of `context`. Both have one signature. `cuda` is null in builds without CUDA, where a
// GPU context throws Error(Fault::config).
template <class Result, class... Arguments>
BoundKernel<Result, Arguments...> choose_arm(Context& context, const char* name, Result (*cpu)(Context&, Arguments...),
                                             std::type_identity_t<Result (*)(Context&, Arguments...)> cuda,
                                             bool takes_bf16 = true) {
  if (context.is_cpu()) return {context, name, cpu, takes_bf16};
  DT_CHECK(cuda != nullptr, name, ": built without CUDA; configure with -DDTRAIN_CUDA=ON");
  return {context, name, cuda};
}

}  // namespace dtrain

// DT_DISPATCH(context, function)(arguments...) calls cpu::function or cuda::function with (context, arguments...) and
// returns its result. Builds without CUDA reference no cuda:: symbol. There is no fallback between devices.
#ifdef DTRAIN_WITH_CUDA
#define DT_DISPATCH(context, function) \
  ::dtrain::choose_arm((context), #function, cpu::function, cuda::function, ::dtrain::takes_bf16<cpu::function>)
#else
#define DT_DISPATCH(context, function) \
  ::dtrain::choose_arm((context), #function, cpu::function, nullptr, ::dtrain::takes_bf16<cpu::function>)
#endif
