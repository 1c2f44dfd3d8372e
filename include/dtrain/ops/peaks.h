// Measured peak compute throughput and memory bandwidth of a device; lower while other work uses the machine.
#pragma once

#include "dtrain/core/context.h"

namespace dtrain {

// Peak FLOP/s (2 per multiply-add), measured for about `seconds`. CPU: f32 FMA loops, or bf16 dot products where the
// instruction set has them, on all threads of the context. GPU: the fastest of several square GEMMs in `dtype`.
// Temporaries come from the context's pool and are freed.
double measure_peak_flops(Context& context, DType dtype = DType::f32, double seconds = 0.2);

// Peak memory bandwidth in bytes per second: the fastest of several a[i] = b[i] + c[i] over arrays of 128 MiB (3
// accesses per element), for about `seconds` after a warm-up. Arrays come from the context's pool and are freed.
double measure_peak_bandwidth(Context& context, double seconds = 0.2);

}  // namespace dtrain
