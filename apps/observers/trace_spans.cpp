#include "apps/observers/trace_spans.h"

#include <fmt/format.h>

namespace dtrain::observers {

std::vector<TraceSpan> spans_of(const AllReduceReport& report) {
  const std::string lane = "all-reduce: " + report.what;
  return {{.lane = lane, .name = "queued", .begin = report.queued, .end = report.begun},
          {.lane = lane,
           .name = report.what,
           .begin = report.begun,
           .end = report.ended,
           .args = {{"bytes", report.bytes}}}};
}

TraceSpan span_of(const WorkRecord& record) {
  TraceSpan span{.lane = "compute", .name = record.name, .begin = record.begin};
  span.end =
      span.begin + std::chrono::duration_cast<SteadyTimePoint::duration>(std::chrono::duration<double>(record.seconds));
  if (record.level == WorkLevel::op && !record.layer().empty()) span.name += " " + record.layer();
  if (record.level == WorkLevel::op) {
    span.args = {{"op", record.name}, {"phase", record.phase}, {"output", record.output.to_string()}};
    for (size_t i = 0; i < record.inputs.size(); ++i)
      span.args.emplace_back(fmt::format("input {}", i + 1), record.inputs[i].to_string());
  }
  for (size_t i = 0; i < record.parameters.size(); ++i)
    span.args.emplace_back(fmt::format("parameter {}", i + 1), record.parameters[i]);
  if (record.flops > 0) span.args.emplace_back("FLOPs", record.flops);
  if (record.bytes > 0) span.args.emplace_back("bytes", record.bytes);
  return span;
}

}  // namespace dtrain::observers
