// DT_DISPATCH: the one switch between the cpu:: and the cuda:: arm of an op.
#pragma once

#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>

#include "libdtrain/core/context.h"
#include "libdtrain/core/profiler.h"
#include "libdtrain/core/thread_count.h"
#include "libdtrain/core/widened.h"

namespace dtrain {

// Throws Error, naming the kernel, where one of its arguments is or holds a tensor on another device than the
// context's. An undefined tensor is one that is left out, and passes. A struct that holds tensors, or other such
// structs, lists them:
//   auto tensors() const { return std::tie(x, gamma); }
// A range is searched element by element; what can be copied byte by byte holds no tensor.
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

// A kernel and the context that it runs on: called with the rest of the kernel's arguments. Throws Error where a tensor
// in one of them is on another device. On a CPU it has the context's threads, whatever thread calls, and where it does
// not take bf16 it is given stand-ins for such tensors.
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

// The kernel of the arm that serves `context`. Both arms have one signature. `cuda` is null in a build without CUDA:
// Error(Fault::config) then says so, where the context is a GPU's.
template <class Result, class... Arguments>
BoundKernel<Result, Arguments...> choose_arm(Context& context, const char* name, Result (*cpu)(Context&, Arguments...),
                                             std::type_identity_t<Result (*)(Context&, Arguments...)> cuda,
                                             bool takes_bf16 = true) {
  if (context.is_cpu()) return {context, name, cpu, takes_bf16};
  DT_CHECK(cuda != nullptr, name, ": this build has no CUDA arm; configure with -DDTRAIN_CUDA=ON");
  return {context, name, cuda};
}

}  // namespace dtrain

// DT_DISPATCH(context, function)(arguments...) is a call of cpu::function or cuda::function with (context,
// arguments...), and has its result. A build without CUDA refers to no cuda:: symbol; there is no fallback from one arm
// to the other.
#ifdef DTRAIN_WITH_CUDA
#define DT_DISPATCH(context, function) \
  ::dtrain::choose_arm((context), #function, cpu::function, cuda::function, ::dtrain::takes_bf16<cpu::function>)
#else
#define DT_DISPATCH(context, function) \
  ::dtrain::choose_arm((context), #function, cpu::function, nullptr, ::dtrain::takes_bf16<cpu::function>)
#endif
