// Some rows of a tensor, its outermost dimension.
#pragma once

#include "libdtrain/autograd/tape.h"

namespace dtrain {

// Rows [begin, end) of x [n, ...], a view. The first slice whose gradient is made clears that of the other rows. Throws
// Error where there are no such rows.
Var slice_rows(Tape& tape, const Var& x, int64_t begin, int64_t end);

}  // namespace dtrain
