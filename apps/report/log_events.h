// Extracts starts, ends and faults from logs.
#pragma once

#include <string>

#include "apps/report/run_data.h"

namespace dtrain::report {

// Adds the events of a log of dtrain-cnn-benchmarks or dtrain-mask-rcnn, or of log.log. Accepts any text. Beyond 500
// warnings and notices, only counts them, in a notice.
void read_log(const std::string& path, RunData& run);

// "restart", "failure"
std::string name_of(EventKind kind);

}  // namespace dtrain::report
