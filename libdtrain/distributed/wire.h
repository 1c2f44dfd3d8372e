// Wire conversion between f32 and 16-bit types, with accumulation in f32. Single-threaded, vectorisable loops on the
// communication thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dtrain/core/types.h"

namespace dtrain {

// Rounds `values` to `wire` (bf16 or f16, nearest even) into `bytes`, and in place.
void round_to_wire(DType wire, float* values, std::byte* bytes, int64_t count);
// values[i] += bytes[i], of type f32, bf16 or f16.
void add_from_wire(DType wire, const std::byte* bytes, float* values, int64_t count);
// values[i] = bytes[i], of type bf16 or f16.
void copy_from_wire(DType wire, const std::byte* bytes, float* values, int64_t count);

}  // namespace dtrain
