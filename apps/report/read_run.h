// A run, from the files that it has left.
#pragma once

#include <cstddef>
#include <string>

#include "apps/report/run_data.h"

namespace dtrain::report {

// `path` is a metrics file or a folder, in which these are looked for: *.jsonl and *.csv, else stats.json; *.log;
// config.toml; evaluations.json and starts.json; timelines, *.json; checkpoints/; gallery.json in a folder of any name,
// and predictions of dtrain-classify, *.jsonl. `pictures`: of each end of a list of predictions. Throws
// Error(Fault::data) where there is nothing of a run, or a file is damaged in its middle.
RunData read_run(const std::string& path, size_t pictures);

// Adds checkpoints, and what the newest one records of the run.
void read_checkpoints(const std::string& folder, RunData& run);
// Adds the settings of config.toml, evaluations.json's evaluations and the failure that starts.json remembers, each
// where it is there.
void read_state_files(const std::string& folder, RunData& run);

}  // namespace dtrain::report
