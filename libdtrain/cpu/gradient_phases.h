// The gradient of a convolution's images as convolutions of dy: one for each phase, the pixels of dx whose rows and
// columns are the same modulo the strides. Those are reached by the same taps of the kernel, from neighbours in dy.
#pragma once

#include <functional>
#include <vector>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/kernels/product.h"
#include "libdtrain/cpu/places.h"

namespace dtrain::cpu {

struct GradientPhase {
  ConvShape conv;                      // from dy, of k channels, to the phase's pixels, of c
  Places places;                       // of those in dx
  std::vector<int64_t> rows, columns;  // of the kernel, in the order of the taps of `conv`
};

// Calls convolve(phase, panels) for each phase that any tap reaches; `panels`: its filters, as gathered_conv takes
// them. The other pixels of dx become zero, unless convolutions add to them. One group, c in whole panels, k in whole
// words.
template <class T>
void for_each_phase(Context&, const ConvShape&, const T* w, T* dx, bool add,
                    const std::function<void(const GradientPhase&, const T* panels)>& convolve);

}  // namespace dtrain::cpu
