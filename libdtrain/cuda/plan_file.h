// Plan file: the autotuned plan of each problem on one machine, as readable text.
#pragma once

#include <map>
#include <string>

#include "libdtrain/cuda/conv_problem.h"

namespace dtrain::cuda {

struct SavedPlan {
  bool supported = false;  // false: no engine supports the problem, or the fused composition is slower
  EngineChoice choice;
  float milliseconds = 0;  // 0: not measured
  bool operator==(const SavedPlan&) const = default;
};
// Keyed by name_of(problem), or by the name of a composition, which has no engine.
using PlanBook = std::map<std::string, SavedPlan>;

// `identity`: one line with all that plans depend on besides the problem: GPU, driver and library version.
std::string to_text(const PlanBook& plans, const std::string& identity);
// Throws Error(Fault::resource), with the reason, for text that is damaged or has another identity.
PlanBook parse_plans(const std::string& text, const std::string& identity);

// Reads a plan file; empty if absent.
PlanBook read_plans(const std::string& path, const std::string& identity);
// Merges `plans` into the file, replacing entries of equal names, and returns all of its entries. Safe against
// concurrent processes: the file is locked and replaced atomically. An unusable file is replaced. Throws
// Error(Fault::resource) where it cannot be written.
PlanBook add_plans(const PlanBook& plans, const std::string& path, const std::string& identity);

}  // namespace dtrain::cuda
