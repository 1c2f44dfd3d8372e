// What is asked of a context when it is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "libdtrain/core/cpu_isa.h"

namespace dtrain {

struct CpuOptions {
  // Up to kMaxThreads; 0: OMP_NUM_THREADS where set, else one per core, whatever a quota says (cores.h).
  int threads = 0;
  size_t memory_cap = SIZE_MAX;  // bytes the pool may reserve
  // The highest instruction set that kernels use, by default the processor's best. Those of oneDNN keep to that of the
  // process's first context.
  std::optional<CpuIsa> isa{};
};

struct CudaOptions {
  int device = 0;
  size_t memory_cap = 0;       // bytes the pool may reserve; 0: all that is free but a reserve for the libraries
  bool deterministic = false;  // only algorithms that give the same bits in every run
  bool tf32 = false;           // f32 convolutions and products may round their inputs to 10 bits of mantissa
  bool autotune = true;     // run every algorithm of a convolution once and keep the fastest; else trust cuDNN's guess
  std::string plan_file{};  // where the choice of convolution algorithms is kept; empty: nowhere
  bool sync_each_launch = false;  // for debugging: wait after each launch, so that an error names the op that caused it
  bool pool = true;  // false, for memory checkers: each tensor has memory of its own, whose bounds they see
};

}  // namespace dtrain
