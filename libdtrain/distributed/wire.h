// Numbers under way: f32 to the type on the wire and back, and sums in f32. On the communication thread alone, so
// plain loops that vectorise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libdtrain/core/types.h"

namespace dtrain {

// Rounds `values` to `wire` (bf16 or f16, to nearest even) into `bytes`, and in place.
void round_to_wire(DType wire, float* values, std::byte* bytes, int64_t count);
// values[i] += bytes[i], of type f32, bf16 or f16.
void add_from_wire(DType wire, const std::byte* bytes, float* values, int64_t count);
// values[i] = bytes[i], of type bf16 or f16.
void copy_from_wire(DType wire, const std::byte* bytes, float* values, int64_t count);

}  // namespace dtrain
