// The instruction sets that tests of kernels run: those that this processor has, the best one first, because contexts
// of lower ones lower oneDNN for the whole process where it has not been used. The last one, scalar, has all kernels.
#pragma once

#include <memory>
#include <vector>

#include "dtrain/core/context.h"
#include "dtrain/core/cpu_isa.h"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain {

inline std::vector<CpuIsa> instruction_sets() {
  std::vector<CpuIsa> sets;
  for (int isa = static_cast<int>(best_cpu_isa()); isa >= 0; --isa) sets.push_back(static_cast<CpuIsa>(isa));
  return sets;
}

// Those with a capability.
inline std::vector<CpuIsa> instruction_sets_with(bool cpu::Capabilities::*capability) {
  std::vector<CpuIsa> sets;
  for (const CpuIsa isa : instruction_sets())
    if (cpu::kernels_of(isa).capabilities.*capability) sets.push_back(isa);
  return sets;
}

inline std::unique_ptr<Context> context_of(CpuIsa isa, int threads = 2) {
  return make_cpu_context({.threads = threads, .isa = isa});
}

}  // namespace dtrain
