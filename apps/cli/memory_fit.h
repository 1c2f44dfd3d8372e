// Advice for steps that exceed the device's memory.
#pragma once

#include <cstdint>
#include <string>

#include "apps/cli/machine.h"
#include "dtrain/models/catalog.h"
#include "dtrain/ops/pointwise.h"

namespace dtrain::cli {

// A training step of a classifier.
struct ClassifierStep {
  Machine machine;
  models::ClassifierInfo info;
  models::ClassifierOptions options;
  PixelNormalization pixels;
  int64_t batch = 1;
};

// Suffix for an out-of-memory message: a batch size that would approximately fit. Runs smaller batches in a separate
// memory pool and extrapolates their peak memory.
std::string advice_on_memory(Context& context, const ParameterStore& store, const ClassifierStep& step);

}  // namespace dtrain::cli
