// What to do where the memory of the device does not hold a step.
#pragma once

#include <string>

#include "apps/cnn_benchmarks/session.h"

namespace dtrain::cnn_benchmarks {

// The end of the message of a step that ran out of memory: a batch size that would fit, about. It is found by running
// smaller batches, with a pool of their own, and scaling up what they take.
std::string advice_on_memory(Session& session);

}  // namespace dtrain::cnn_benchmarks
