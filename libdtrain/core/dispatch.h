// DT_DISPATCH: the one switch between the cpu:: and the cuda:: arm of an op.
#pragma once

#include <type_traits>
#include <utility>

#include "libdtrain/core/context.h"
#include "libdtrain/core/thread_count.h"

namespace dtrain {

// Requires that a kernel's argument, if it is a tensor and not left out, is on the context's device.
template <class Argument>
void require_argument(const Context&, const Argument&, const char*) {}
inline void require_argument(const Context& context, const Tensor& x, const char* kernel) {
  if (x) context.require(x, kernel);
}

// A kernel and the context that it runs on: called with the rest of the kernel's arguments. Throws Error where a tensor
// among them is on another device. On a CPU it has the context's threads, whatever thread calls.
template <class Result, class... Arguments>
struct BoundKernel {
  Context& context;
  const char* name;
  Result (*kernel)(Context&, Arguments...);
  Result operator()(Arguments... arguments) const {
    (require_argument(context, arguments, name), ...);
    if (!context.is_cpu()) return kernel(context, std::forward<Arguments>(arguments)...);
    const ThreadCount threads(context.threads());
    return kernel(context, std::forward<Arguments>(arguments)...);
  }
};

// The kernel of the arm that serves `context`. Both arms have one signature. `cuda` is null in a build without CUDA:
// Error(Fault::config) then says so, where the context is a GPU's.
template <class Result, class... Arguments>
BoundKernel<Result, Arguments...> choose_arm(Context& context, const char* name, Result (*cpu)(Context&, Arguments...),
                                             std::type_identity_t<Result (*)(Context&, Arguments...)> cuda) {
  if (context.is_cpu()) return {context, name, cpu};
  DT_CHECK(cuda != nullptr, name, ": this build has no CUDA arm; configure with -DDTRAIN_CUDA=ON");
  return {context, name, cuda};
}

}  // namespace dtrain

// DT_DISPATCH(context, function)(arguments...) is a call of cpu::function or cuda::function with (context,
// arguments...), and has its result. A build without CUDA refers to no cuda:: symbol; there is no fallback from one arm
// to the other.
#ifdef DTRAIN_WITH_CUDA
#define DT_DISPATCH(context, function) ::dtrain::choose_arm((context), #function, cpu::function, cuda::function)
#else
#define DT_DISPATCH(context, function) ::dtrain::choose_arm((context), #function, cpu::function, nullptr)
#endif
