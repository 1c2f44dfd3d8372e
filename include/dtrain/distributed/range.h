// Range: elements of a gradient arena or of a collective operation.
#pragma once

#include <cstdint>

namespace dtrain {

// Element range [begin, end) of the reduced or copied data.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
};

}  // namespace dtrain
