// What to do where the memory of the device does not hold a step.
#pragma once

#include <cstdint>
#include <string>

#include "apps/cli/machine.h"
#include "libdtrain/ops/pointwise.h"
#include "models/catalog.h"

namespace dtrain::cli {

// A training step of a classifier.
struct ClassifierStep {
  Machine machine;
  models::ClassifierInfo info;
  models::ClassifierOptions options;
  PixelNormalization pixels;
  int64_t batch = 1;
};

// The end of the message of a step in `context` that ran out of memory: a batch size that fits approximately. Smaller
// batches are run in a memory pool of their own, and their peak memory is extrapolated.
std::string advice_on_memory(Context& context, const ParameterStore& store, const ClassifierStep& step);

}  // namespace dtrain::cli
