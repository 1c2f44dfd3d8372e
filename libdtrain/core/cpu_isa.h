// The instruction sets that kernels of the CPU arms are compiled for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtrain {

// Ascending: a processor that has one of them has those before it.
enum class CpuIsa : uint8_t {
  avx2,         // with FMA: vectors of 8 floats; what all builds need
  avx512,       // F, BW, DQ and VL: vectors of 16 floats
  avx512_vnni,  // with VNNI: products of quadruples of int8
  avx512_bf16,  // with BF16: products of pairs of bf16
  amx,          // with tile registers: products of whole tiles of bf16 and of int8
};

// As the enumerator is spelled.
const char* name_of(CpuIsa isa);
// The set of this name; nothing where there is none.
std::optional<CpuIsa> cpu_isa_of(std::string_view name);
// All names, ascending, with ", " between them.
std::string cpu_isa_names();

// The highest set that this processor and its operating system offer.
CpuIsa best_cpu_isa();

}  // namespace dtrain
