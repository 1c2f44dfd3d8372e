#include "dtrain/train/averaged.h"

namespace dtrain {

void with_average(ParameterStore& store, const Tensor& average, const std::function<void()>& body) {
  Context& context = store.context();
  const Tensor kept = context.empty(store.values().shape());
  const auto hold = [&](const Tensor& values) {
    context.copy(values, store.values());
    store.refresh_compute();
  };
  context.copy(store.values(), kept);
  hold(average);
  try {
    body();
  } catch (...) {
    hold(kept);
    throw;
  }
  hold(kept);
}

}  // namespace dtrain
