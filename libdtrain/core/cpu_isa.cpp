#include "libdtrain/core/cpu_isa.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace dtrain {
namespace {

constexpr std::array<const char*, 4> kNames{"avx2", "avx512", "avx512_bf16", "amx"};

// Linux saves tile registers of processes that have asked for it.
bool may_use_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
}

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
  if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vnni")) return CpuIsa::avx512;
  const bool tiles = __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
                     __builtin_cpu_supports("amx-int8") && may_use_tiles();
  return tiles ? CpuIsa::amx : CpuIsa::avx512_bf16;
}

}  // namespace dtrain
