// What the numbers of a run are called in TensorBoard and in statistics.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "libdtrain/run/observer.h"

namespace dtrain::observers {

// From the engine's names to a program's: "total_loss" with the L2 term, "l2_loss", "loss" without, "learning_rate",
// the metrics of the loss, and the values of an evaluation. What is not in the table keeps its name; what has an empty
// one is left out.
using ScalarTags = std::map<std::string, std::string>;

std::vector<MetricValue> tagged(const ScalarTags& tags, const std::vector<MetricValue>& values);
// Those of a step, whose L2 term is `l2_loss`.
std::vector<MetricValue> scalars_of(const Stepped& event, double l2_loss, const ScalarTags& tags);

}  // namespace dtrain::observers
