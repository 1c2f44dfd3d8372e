// What the log of a run says of starts, ends and faults.
#pragma once

#include <string>

#include "apps/report/run_data.h"

namespace dtrain::report {

// Adds the events of a log that dtrain-cnn-benchmarks or dtrain-mask-rcnn has printed, or log.log. Any text is a log.
// Of one with more than 500 warnings and notices the rest is counted in a notice.
void read_log(const std::string& path, RunData& run);

// "restart", "failure"
std::string name_of(EventKind kind);

}  // namespace dtrain::report
