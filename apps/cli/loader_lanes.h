// Trace spans of loader threads.
#pragma once

#include <functional>

#include "dtrain/data/loader.h"
#include "libdtrain/io/trace_file.h"

namespace dtrain::cli {

// Callback for LoaderOptions::report: one lane per worker, and one for the consumer's waits. Null if `show` is null.
std::function<void(const data::LoaderWork&)> loader_lanes(std::function<void(const TraceSpan&)> show);

}  // namespace dtrain::cli
