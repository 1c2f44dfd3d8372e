// The plan file: which algorithm was chosen for each problem on one machine, as text that a person can read.
#pragma once

#include <map>
#include <string>

#include "libdtrain/cuda/conv_problem.h"

namespace dtrain::cuda {

struct SavedPlan {
  bool supported = false;  // false: no engine takes the problem, or the composition is not the faster one
  EngineChoice choice;
  float milliseconds = 0;  // as measured; 0: not measured
  bool operator==(const SavedPlan&) const = default;
};
// By name_of(problem), or by that of a composition, which has no engine of its own.
using PlanBook = std::map<std::string, SavedPlan>;

// `identity` is one line that names all the choices depend on beside the problem: the GPU, the driver, the library.
std::string to_text(const PlanBook& plans, const std::string& identity);
// Throws Error(Fault::resource), saying why, for a text that is damaged or of another identity.
PlanBook parse_plans(const std::string& text, const std::string& identity);

// As above, from a file; an absent one is empty.
PlanBook read_plans(const std::string& path, const std::string& identity);
// Adds `plans` to those of the file, in place of those of the same names, and returns all that it holds then. Other
// processes may do the same at the same time. The file is written whole or not at all; one that cannot be used, see
// above, is replaced. Throws Error(Fault::resource) where it cannot be written.
PlanBook add_plans(const PlanBook& plans, const std::string& path, const std::string& identity);

}  // namespace dtrain::cuda
