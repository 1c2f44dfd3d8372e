// Trace spans of observed events.
#pragma once

#include <vector>

#include "dtrain/core/profiler.h"
#include "dtrain/distributed/communicator.h"
#include "libdtrain/io/trace_file.h"

namespace dtrain::observers {

// Queueing and execution of an all-reduce, in one lane per bucket, because all-reduces overlap.
std::vector<TraceSpan> spans_of(const AllReduceReport& report);

// In the lane "compute", with known shapes, parameters, FLOPs and bytes.
TraceSpan span_of(const WorkRecord& record);

}  // namespace dtrain::observers
