// CpuIsa: instruction sets that CPU kernels are compiled for, and their detection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtrain {

// Ascending: each implies those before it.
enum class CpuIsa : uint8_t {
  avx2,         // with FMA, 8 floats per vector; required by all builds
  avx512,       // F, BW, DQ and VL; 16 floats per vector
  avx512_vnni,  // VNNI: int8 dot products of 4
  avx512_bf16,  // BF16: bf16 dot products of 2
  amx,          // AMX: tile matrix multiplication of bf16 and int8
};

// Name of the enumerator.
const char* name_of(CpuIsa isa);
// Inverse of name_of(); nullopt for unknown names.
std::optional<CpuIsa> cpu_isa_of(std::string_view name);
// All names, ascending, joined by ", ".
std::string cpu_isa_names();

// Highest instruction set that the processor and the operating system support.
CpuIsa best_cpu_isa();

}  // namespace dtrain
