#include "apps/info/cpu_features.h"

#include "dtrain/core/cpu_isa.h"

namespace dtrain::info {

#if defined(__x86_64__)

std::string cpu_features() {
  __builtin_cpu_init();
  std::string features;
  const auto add = [&](bool has, const char* name) {
    if (has) features += (features.empty() ? "" : " ") + std::string(name);
  };
  add(__builtin_cpu_supports("sse4.2"), "sse4.2");
  add(__builtin_cpu_supports("avx2"), "avx2");
  add(__builtin_cpu_supports("fma"), "fma");
  add(__builtin_cpu_supports("avx512f"), "avx512f");
  add(__builtin_cpu_supports("avx512vnni"), "avx512_vnni");
  add(__builtin_cpu_supports("avx512bf16"), "avx512_bf16");
  add(best_cpu_isa() >= CpuIsa::amx, "amx");
  return features;
}

#else

std::string cpu_features() { return "none used"; }

#endif

}  // namespace dtrain::info
