// Deprecated header, removed with the next minor version: include libdtrain/autograd/op_observer.h.
#pragma once

#include "libdtrain/autograd/op_observer.h"

namespace dtrain {

using OpWatch [[deprecated("renamed: OpObserver")]] = OpObserver;

}  // namespace dtrain
