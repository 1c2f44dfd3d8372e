// What a device can do, to hold against what a training does.
#pragma once

#include "libdtrain/core/context.h"

namespace dtrain {

// Operations per second, a multiply-add being two, of the fastest of several products of fp32 matrices on this
// context's device and threads, tried for about `seconds`. Other work on the machine lowers it.
double measure_peak_flops(Context& context, double seconds = 0.2);

}  // namespace dtrain
