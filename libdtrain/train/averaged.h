// A model by the moving average of its parameters, for a while.
#pragma once

#include <functional>

#include "libdtrain/autograd/parameters.h"

namespace dtrain {

// Calls body() while the store holds `average` in place of its values(); running statistics stay as they are. What it
// held before is there again afterwards, bit for bit, also where `body` throws. For that time the values are in memory
// twice. `average`: laid out like values(), see Optimizer::average().
void with_average(ParameterStore& store, const Tensor& average, const std::function<void()>& body);

}  // namespace dtrain
