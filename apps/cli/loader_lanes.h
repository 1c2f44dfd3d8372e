// What the threads of a loader do, as spans of a trace.
#pragma once

#include <functional>

#include "data/loader.h"
#include "libdtrain/io/trace_file.h"

namespace dtrain::cli {

// For LoaderOptions::report: a lane for each worker, and one for the consumer's waiting. Null where `show` is.
std::function<void(const data::LoaderWork&)> loader_lanes(std::function<void(const TraceSpan&)> show);

}  // namespace dtrain::cli
