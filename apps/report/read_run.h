// Reads a run from its files.
#pragma once

#include <cstddef>
#include <string>

#include "apps/report/run_data.h"

namespace dtrain::report {

// `path`: a metrics file, or a folder with any of: *.jsonl and *.csv, else stats.json; *.log; config.toml;
// evaluations.json and starts.json; timelines, *.json; checkpoints/; gallery.json in any subfolder; and predictions of
// dtrain-classify, *.jsonl. `pictures`: number of worst and of best predictions. Throws Error(Fault::data) if nothing
// is found, or a file is damaged before its last line.
RunData read_run(const std::string& path, size_t pictures);

// Adds checkpoints, and the settings recorded in the newest.
void read_checkpoints(const std::string& folder, RunData& run);
// Adds the settings of config.toml, the evaluations of evaluations.json and the failure of starts.json, if they exist.
void read_state_files(const std::string& folder, RunData& run);

}  // namespace dtrain::report
