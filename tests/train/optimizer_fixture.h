// Small model with optimizer, for tests of updates by kind of parameter.
#pragma once

#include <optional>
#include <vector>

#include "dtrain/train/optimizer.h"
#include "tests/testing.h"

namespace dtrain {

// weight, bias, frozen weight, weight; every gradient is `gradient`.
struct OptimizerModel {
  OptimizerModel(Context& context, const OptimizerOptions& options, float gradient) : store(context) {
    first = &store.add("first", {3, 30}, Init::constant(1));
    bias = &store.add("bias", {30}, Init::constant(1), {.decay = false});
    frozen = &store.add("frozen", {5}, Init::constant(1), {.frozen = true});
    last = &store.add("last", {70}, Init::constant(1));
    store.allocate(0);
    for (const Parameter& parameter : store.parameters())
      context.upload(std::vector<float>(static_cast<size_t>(parameter.shape.count()), gradient).data(), parameter.grad);
    optimizer.emplace(store, options);
  }
  // Common value of all elements of a parameter.
  double value(const Parameter* parameter) const {
    const Array values = to_host(store.context(), parameter->value);
    EXPECT_EQ(values.values, std::vector<double>(values.values.size(), values[0])) << parameter->name;
    return values[0];
  }

  ParameterStore store;
  Parameter *first, *bias, *frozen, *last;
  std::optional<Optimizer> optimizer;
};

}  // namespace dtrain
