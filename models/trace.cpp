#include "dtrain/models/trace.h"

namespace dtrain::models {

void Trace::pass(const Conv2d& conv) {
  const Shape& w = conv.weight->shape;
  shape = conv2d_shape(shape, w, conv.options);
  layers.push_back({conv.weight->name, shape.count() * w[1] * w[2] * w[3]});
}

void Trace::pass(const PoolOptions& pool) { shape = pool_shape(shape, pool); }

void Trace::pass(const Linear& linear) {
  shape = {1, linear.weight->shape[0]};
  layers.push_back({linear.weight->name, linear.weight->shape.count()});
}

}  // namespace dtrain::models
