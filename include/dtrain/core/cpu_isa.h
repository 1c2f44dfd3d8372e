// The instruction sets that the CPU kernels are compiled for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtrain {

// Ascending: a processor that has one of them has those before it. `scalar` is for tests, and the best of other
// processors than x86-64 only: it also implements the bf16 and AMX kernels, which the order does not tell. Ask
// Kernels::capabilities.
enum class CpuIsa : uint8_t {
  scalar,       // plain C++ with the results of all instructions below
  avx2,         // with FMA: vectors of 8 floats; what all builds for x86-64 need
  avx512,       // F, BW, DQ and VL: vectors of 16 floats
  avx512_vnni,  // with VNNI: dot products of quads of int8
  avx512_bf16,  // with BF16: dot products of bf16 pairs
  amx,          // with tile registers of bf16 and int8
};

// As the enumerator is spelled.
const char* name_of(CpuIsa isa);
// The instruction set `name`; nullopt if there is none.
std::optional<CpuIsa> cpu_isa_of(std::string_view name);
// All names, ascending, with ", " between them.
std::string cpu_isa_names();

// The highest set that this processor, its operating system and this build offer.
CpuIsa best_cpu_isa();

}  // namespace dtrain
