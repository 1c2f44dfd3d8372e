#include "dtrain/core/cpu_isa.h"

#include <algorithm>
#include <array>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace dtrain {
namespace {

constexpr std::array<const char*, 6> kNames{"scalar", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"};

#if defined(__x86_64__)

// CPUID, since compilers disagree on the names of these features.
bool has_tiles() {
  constexpr unsigned kFeatures = 7, kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25, kAll = kBf16 | kTile | kInt8;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) && (d & kAll) == kAll;
}

// Linux saves tile registers only for processes that request them.
bool may_use_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
}

CpuIsa processor_isa() {
  __builtin_cpu_init();
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!wide) return CpuIsa::avx2;
  if (!__builtin_cpu_supports("avx512vnni")) return CpuIsa::avx512;
  if (!__builtin_cpu_supports("avx512bf16")) return CpuIsa::avx512_vnni;
  return has_tiles() && may_use_tiles() ? CpuIsa::amx : CpuIsa::avx512_bf16;
}

#else

CpuIsa processor_isa() { return CpuIsa::scalar; }

#endif

}  // namespace

const char* name_of(CpuIsa isa) { return kNames[static_cast<size_t>(isa)]; }

std::optional<CpuIsa> cpu_isa_of(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<CpuIsa>(i);
  return std::nullopt;
}

std::string cpu_isa_names() {
  std::string names;
  for (const char* name : kNames) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

CpuIsa best_cpu_isa() { return std::min(processor_isa(), CpuIsa::DTRAIN_HIGHEST_ISA); }

}  // namespace dtrain
