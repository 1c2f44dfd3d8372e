// Metrics files as curves.
#pragma once

#include <string>

#include "apps/report/run_data.h"

namespace dtrain::report {

// Adds the values of a JSON lines file, a CSV file (*.csv) or stats.json, see docs/logs.md. Skips a truncated last line
// (of a killed run) with a notice. Throws Error(Fault::data), "FILE, line N: ...", for other files, and
// Error(Fault::resource) if the file cannot be read.
void read_json_lines(const std::string& path, RunData& run);
void read_csv(const std::string& path, RunData& run);
void read_stats(const std::string& path, RunData& run);

// Sorts the points of each curve by step; the last of several points per step counts.
void order_curves(Curves& curves);

}  // namespace dtrain::report
