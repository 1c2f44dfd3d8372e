// Trace: infers shapes while a model is built for images of one size.
#pragma once

#include "dtrain/layers.h"
#include "dtrain/models/classifier.h"
#include "dtrain/ops/pool.h"

namespace dtrain::models {

struct Trace {
  explicit Trace(int64_t image_size) : shape{1, image_size, image_size, 3} {}

  Shape shape;                    // [1, h, w, c], or [1, features]
  std::vector<LayerWork> layers;  // convolutions and linear layers so far

  int64_t channels() const { return shape[shape.rank() - 1]; }
  int64_t features() const { return shape.count(); }

  void pass(const Conv2d& conv);
  void pass(const PoolOptions& pool);
  void pass(const Linear& linear);
};

}  // namespace dtrain::models
