// CpuOptions and CudaOptions: settings of a context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "dtrain/core/cpu_isa.h"

namespace dtrain {

struct CpuOptions {
  // At most kMaxThreads; 0: OMP_NUM_THREADS if set, else one per core, regardless of CPU quotas (cores.h).
  int threads = 0;
  size_t memory_cap = SIZE_MAX;  // limit of the memory pool, bytes
  // Highest instruction set of kernels; default: the processor's best. oneDNN keeps the instruction set of the
  // process's first context.
  std::optional<CpuIsa> isa{};
  // An algorithm that convolutions use wherever it can compute them, e.g. "winograd", for tests and comparisons; empty:
  // the fastest one. Names: conv2d_algorithm_names().
  std::string conv_algorithm{};
};

struct CudaOptions {
  int device = 0;
  size_t memory_cap = 0;       // limit of the memory pool, bytes; 0: free memory less a reserve for the libraries
  bool deterministic = false;  // only algorithms with bitwise reproducible results
  bool tf32 = false;           // allow TF32 in f32 convolutions and GEMMs: inputs are rounded to 10 bits of mantissa
  bool autotune = true;  // time all algorithms of a convolution once and keep the fastest; else use cuDNN's heuristic
  std::string plan_file{};        // cache of autotuned plans; empty: none
  bool sync_each_launch = false;  // for debugging: synchronise after each launch, so that an error names its op
  bool pool = true;               // false: one allocation per tensor, for memory checkers
};

}  // namespace dtrain
