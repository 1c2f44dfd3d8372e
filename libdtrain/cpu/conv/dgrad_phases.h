// The data gradient of a strided convolution as stride-1 convolutions of dy: one for each phase, the pixels of dx with
// equal rows and columns modulo the strides. A phase is reached by the same taps of the kernel, from neighbours in dy.
#pragma once

#include <functional>
#include <vector>

#include "libdtrain/cpu/conv/conv_shape.h"

namespace dtrain::cpu {

struct DgradPhase {
  ConvShape conv;                      // from dy, of k channels, to the phase's pixels, of c
  OutputLayout layout;                 // of those pixels in dx
  std::vector<int64_t> rows, columns;  // of the kernel, in the order of the taps of `conv`
};

// Calls convolve(phase, packed_w) for each phase that a tap reaches, with the phase's weights as implicit_gemm takes
// them. The other pixels of dx become zero, unless gradients are added to them. One group, c in whole panels, k a
// multiple of kPackFactor.
template <class T>
void for_each_phase(Context&, const ConvShape&, const T* w, T* dx, bool add,
                    const std::function<void(const DgradPhase&, const T* packed_w)>& convolve);

}  // namespace dtrain::cpu
