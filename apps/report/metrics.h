// Metrics files as curves.
#pragma once

#include <string>

#include "apps/report/run_data.h"

namespace dtrain::report {

// Adds what a file of JSON lines, of comma-separated values (*.csv) or stats.json holds, see docs/logs.md. Of a run
// that was killed the last line may be cut: it is left out with a notice. Throws Error(Fault::data), "FILE, line N:
// ...", for any other file, and Error(Fault::resource) where it cannot be read.
void read_json_lines(const std::string& path, RunData& run);
void read_csv(const std::string& path, RunData& run);
void read_stats(const std::string& path, RunData& run);

// Puts the points of each curve into the order of their steps; of several of one step the last one counts.
void order_curves(Curves& curves);

}  // namespace dtrain::report
