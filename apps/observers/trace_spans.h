// What has been observed, as the spans of a trace.
#pragma once

#include <vector>

#include "libdtrain/core/profiler.h"
#include "libdtrain/distributed/communicator.h"
#include "libdtrain/io/trace_file.h"

namespace dtrain::observers {

// While it was queued and while it was under way, in a lane of the bucket's own: sums overlap.
std::vector<TraceSpan> spans_of(const AllReduceReport& sum);

// In the lane "compute", with the shapes, parameters, FLOPs and bytes that are known.
TraceSpan span_of(const WorkRecord& record);

}  // namespace dtrain::observers
