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

}  // namespace dtrain::report
