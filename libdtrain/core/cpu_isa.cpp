#include "libdtrain/core/cpu_isa.h"

#include <array>

namespace dtrain {
namespace {

constexpr std::array<const char*, 3> kNames{"avx2", "avx512", "avx512_bf16"};

}  // namespace

const char* name_of(CpuIsa isa) { return kNames[static_cast<size_t>(isa)]; }

std::optional<CpuIsa> cpu_isa_of(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<CpuIsa>(i);
  return std::nullopt;
}

CpuIsa best_cpu_isa() {
  __builtin_cpu_init();
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!wide) return CpuIsa::avx2;
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni") ? CpuIsa::avx512_bf16
                                                                                      : CpuIsa::avx512;
}

}  // namespace dtrain
