// The instruction sets that tests of kernels go through: those that this processor has, the best one first, because
// contexts of lower ones lower oneDNN for the whole process where it has not been used.
#pragma once

#include <memory>
#include <vector>

#include "libdtrain/core/context.h"
#include "libdtrain/core/cpu_isa.h"

namespace dtrain {

inline std::vector<CpuIsa> instruction_sets() {
  std::vector<CpuIsa> sets;
  for (const CpuIsa isa : {CpuIsa::amx, CpuIsa::avx512_bf16, CpuIsa::avx512, CpuIsa::avx2})
    if (isa <= best_cpu_isa()) sets.push_back(isa);
  return sets;
}

inline std::unique_ptr<Context> context_of(CpuIsa isa, int threads = 2) {
  return make_cpu_context({.threads = threads, .isa = isa});
}

}  // namespace dtrain
