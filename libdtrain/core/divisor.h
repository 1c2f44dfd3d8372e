// Divisor: integer division by an invariant divisor, by multiplication.
#pragma once

#include <cstdint>

#include "dtrain/core/error.h"
#include "dtrain/core/host_device.h"

namespace dtrain {

// x / d for 0 <= x < 2^31 and 1 <= d < 2^31: multiplies by ceil(2^(32 + s) / d), 2^s being the least power of two >= d
// (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994). GPUs have no integer division
// instruction.
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(int64_t d) : divisor_(static_cast<uint32_t>(d)) {
    DT_CHECK(d >= 1 && d < int64_t{1} << 31, "a divisor of ", d, ": expected 1 to 2^31 - 1");
    while (int64_t{1} << shift_ < d) ++shift_;
    const uint64_t power = uint64_t{1} << (32 + shift_);
    // 2^32 is subtracted to fit 32 bits; quotient() adds it back.
    multiplier_ = static_cast<uint32_t>((power + divisor_ - 1) / divisor_ - (uint64_t{1} << 32));
  }

  DT_HD uint32_t quotient(uint32_t x) const {
    return (static_cast<uint32_t>(uint64_t{x} * multiplier_ >> 32) + x) >> shift_;
  }
  // Replaces x by x / d and returns x % d.
  DT_HD uint32_t split(uint32_t& x) const {
    const uint32_t q = quotient(x), rest = x - q * divisor_;
    x = q;
    return rest;
  }

 private:
  uint32_t divisor_ = 1, multiplier_ = 0;
  int shift_ = 0;
};

}  // namespace dtrain
