// What a device reaches at most, measured: both are lower while something else uses the machine.
#pragma once

#include "libdtrain/core/context.h"

namespace dtrain {

// Operations per second, a multiply-add being two, tried for about `seconds`: on a CPU by all threads of the context,
// in loops of multiply-adds of f32 at the width of its instruction set, or for bf16, where the set has them, of
// products of pairs; on a GPU those of `dtype` in the fastest of several products of square matrices. Its memory is the
// context's, and is given back.
double measure_peak_flops(Context& context, DType dtype = DType::f32, double seconds = 0.2);

// Bytes per second to and from the memory: the fastest of several a[i] = b[i] + c[i] over arrays of 128 MiB each, three
// accesses an element, tried for about `seconds` after the first. The arrays are the context's, and are given back.
double measure_peak_bandwidth(Context& context, double seconds = 0.2);

}  // namespace dtrain
