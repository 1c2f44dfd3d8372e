// Scoped use of a model's exponential moving average of parameters.
#pragma once

#include <functional>

#include "dtrain/autograd/parameters.h"

namespace dtrain {

// Calls body() while the store's values() are replaced by `average`; running statistics stay. Restores the previous
// values bitwise, also if `body` throws. Holds the values in memory twice meanwhile. `average`: laid out like values(),
// see Optimizer::average().
void with_average(ParameterStore& store, const Tensor& average, const std::function<void()>& body);

}  // namespace dtrain
