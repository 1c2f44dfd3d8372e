// Timelines of ranks: traces in Chrome's format, see libdtrain/io/trace_file.h.
#pragma once

#include <string>

#include "apps/report/run_data.h"

namespace dtrain::report {

// Whether the file looks like one: a JSON array with an event on each line.
bool is_timeline(const std::string& path);
// Adds its lanes. An end that is missing, as after a kill, is no fault; lines that are no events are counted in a
// notice. The first million spans count.
void read_timeline(const std::string& path, RunData& run);

// Makes lanes of ranks of the curves rank_N_ms, and takes those away: for the steps up to each point, or to several
// where there are many, a span of the rank's own work and one of its wait for the slowest rank. The curves are in
// ascending order of steps.
void take_rank_lanes(RunData& run);

}  // namespace dtrain::report
