// Tables of what a Profiler has observed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libdtrain/core/profiler.h"

namespace dtrain {

// Ops of one kind together.
struct ProfileRow {
  std::string name{}, phase{};  // as in WorkRecord; "(other)" is what a phase did outside of ops, such as waiting
  std::string layer{};          // where layers are told apart
  int64_t count = 0;
  double seconds = 0;
  double flops = 0, bytes = 0;  // 0: not known
};

// A row for each op, phase and, if asked for, layer: those that took the most time first. What ops hold is part of
// them; a kernel outside of ops has a row of its own. The rows' seconds add up to step_seconds().
std::vector<ProfileRow> profile_rows(std::span<const WorkRecord> records, bool by_layer);

// The duration of all steps.
double step_seconds(std::span<const WorkRecord> records);

}  // namespace dtrain
