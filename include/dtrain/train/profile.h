// Profile tables: aggregated records of a Profiler.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dtrain/core/profiler.h"

namespace dtrain {

inline constexpr char kOutsideOps[] = "(other)";

// Ops of one kind, aggregated.
struct ProfileRow {
  std::string name{}, phase{};  // as in WorkRecord; kOutsideOps: time of a phase outside of ops, e.g. waiting
  std::string group{};          // layer or shapes, by ProfileBy
  std::string algorithms{};     // of the ops' kernels, where they name one, e.g. "dgrad winograd, wgrad implicit_gemm"
  int64_t count = 0;
  double seconds = 0;
  double flops = 0, bytes = 0;  // 0: unknown
};

// Grouping besides op and phase: none, by layer, or by shapes, e.g. "[16, 56, 56, 64] x [64, 3, 3, 64]" from the inputs
// of two or more dimensions.
enum class ProfileBy { op, layer, shapes };

// Sorted by time, descending. Kernels count to their op; kernels outside of ops have their own rows. The rows' seconds
// add up to step_seconds().
std::vector<ProfileRow> profile_rows(std::span<const WorkRecord> records, ProfileBy by);

int64_t step_count(std::span<const WorkRecord> records);

// Duration of all steps.
double step_seconds(std::span<const WorkRecord> records);

}  // namespace dtrain
