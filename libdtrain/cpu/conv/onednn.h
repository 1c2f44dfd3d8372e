// Convolutions by oneDNN over NHWC images and KRSC weights: any shape and group count, the fallback.
#pragma once

#include "libdtrain/cpu/conv/algorithm.h"

namespace dtrain::cpu {

template <class T>
struct OnednnConv {
  static Verdict verdict(const Context&, const ConvShape&);
  static void forward(Context&, const ConvShape&, const ConvOperands<T>&);
  static void dgrad(Context&, const ConvShape&, const ConvOperands<T>&);
  static void wgrad(Context&, const ConvShape&, const ConvOperands<T>&);
};

}  // namespace dtrain::cpu
