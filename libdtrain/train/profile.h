// Tables of what a Profiler has observed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libdtrain/core/profiler.h"

namespace dtrain {

inline constexpr char kOutsideOps[] = "(other)";

// Ops of one kind together.
struct ProfileRow {
  std::string name{}, phase{};  // as in WorkRecord; kOutsideOps is what a phase did outside of them, such as waiting
  std::string group{};          // what ProfileBy tells apart
  int64_t count = 0;
  double seconds = 0;
  double flops = 0, bytes = 0;  // 0: not known
};

// What has rows of its own, beside the op and the phase: nothing, each layer, or each choice of an op's shapes, written
// as "[16, 56, 56, 64] x [64, 3, 3, 64]" from its inputs of two or more dimensions.
enum class ProfileBy { op, layer, shapes };

// Those that took the most time come first. What ops hold is part of them; a kernel outside of ops has a row of its
// own. The rows' seconds add up to step_seconds().
std::vector<ProfileRow> profile_rows(std::span<const WorkRecord> records, ProfileBy by);

int64_t step_count(std::span<const WorkRecord> records);

// The duration of all steps.
double step_seconds(std::span<const WorkRecord> records);

}  // namespace dtrain
