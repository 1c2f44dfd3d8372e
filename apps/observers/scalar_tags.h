// Names of scalars in TensorBoard and statistics.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dtrain/run/observer.h"

namespace dtrain::observers {

// Maps the engine's names to a program's: "total_loss" with the L2 term, "loss" without, "l2_loss", "learning_rate",
// metrics of the loss, and values of an evaluation. Unlisted names are unchanged; an empty name drops the value.
using ScalarTags = std::map<std::string, std::string>;

std::vector<MetricValue> tagged(const ScalarTags& tags, const std::vector<MetricValue>& values);
// Scalars of a step with the L2 term `l2_loss`.
std::vector<MetricValue> scalars_of(const Stepped& event, double l2_loss, const ScalarTags& tags);

}  // namespace dtrain::observers
