// Timelines of ranks, from Chrome traces, see libdtrain/io/trace_file.h.
#pragma once

#include <string>

#include "apps/report/run_data.h"

namespace dtrain::report {

// Whether the file looks like a timeline: a JSON array with one event per line.
bool is_timeline(const std::string& path);
// Adds its lanes. Accepts a missing end, as after a kill; counts invalid lines in a notice. Reads at most a million
// spans.
void read_timeline(const std::string& path, RunData& run);

// Converts the curves rank_N_ms into lanes and removes them: per point, or per several points if there are many, a span
// of the rank's work and a span of its wait for the slowest rank. Curves must be in ascending order of steps.
void take_rank_lanes(RunData& run);

}  // namespace dtrain::report
