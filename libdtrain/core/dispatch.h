// DT_DISPATCH: the one switch between the cpu:: and the cuda:: arm of an op.
#pragma once

#include "libdtrain/core/context.h"

// DT_DISPATCH(context, function, args...): calls cpu::function or cuda::function with (context, args...). A build
// without CUDA holds no cuda:: symbol; there is no fallback from one arm to the other.
#ifdef DTRAIN_WITH_CUDA
#define DT_DISPATCH(context, function, ...)   \
  do {                                        \
    if ((context).is_cpu())                   \
      cpu::function((context), __VA_ARGS__);  \
    else                                      \
      cuda::function((context), __VA_ARGS__); \
  } while (false)
#else
#define DT_DISPATCH(context, function, ...)                                                                \
  do {                                                                                                     \
    DT_CHECK((context).is_cpu(), #function ": this build has no CUDA arm; configure with DTRAIN_CUDA=ON"); \
    cpu::function((context), __VA_ARGS__);                                                                 \
  } while (false)
#endif
