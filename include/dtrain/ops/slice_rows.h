// Slice along the outermost dimension.
#pragma once

#include "dtrain/autograd/tape.h"

namespace dtrain {

// Rows [begin, end) of x [n, ...], a view. In backward the first slice's gradient zeroes the other rows. Throws Error
// for rows out of range.
Var slice_rows(Tape& tape, const Var& x, int64_t begin, int64_t end);

}  // namespace dtrain
