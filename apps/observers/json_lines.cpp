#include "apps/observers/json_lines.h"

#include <fmt/format.h>

namespace dtrain::observers {
namespace {

constexpr size_t kMostRanks = 64;  // ranks with a time in each line

}  // namespace

void JsonLines::begun(const Begun& event) {
  figures_.begun(event);
  if (!event.complete) file_.emplace(path_, event.step);
}

void JsonLines::stepping(uint64_t) { figures_.stepping(); }

void JsonLines::stepped(const Stepped& event) {
  MetricsFile::Fields fields = figures_.stepped(event);
  if (fields.empty()) return;
  if (event.slowest.factor > 0 && event.rank_seconds.size() <= kMostRanks)
    for (size_t rank = 0; rank < event.rank_seconds.size(); ++rank)
      fields.emplace_back(fmt::format("rank_{}_ms", rank), 1e3 * event.rank_seconds[rank]);
  append(event.step, fields);
}

void JsonLines::evaluated(const Evaluated& event) {
  MetricsFile::Fields fields;
  for (const MetricValue& value : event.result.values) fields.emplace_back("eval_" + value.name, value.value);
  fields.emplace_back("eval_examples", static_cast<double>(event.result.examples));
  fields.emplace_back("eval_seconds", event.result.seconds);
  append(event.step, fields);
}

void JsonLines::saved(const Saved& event) {
  append(event.report.step,
         {{"checkpoint_bytes", static_cast<double>(event.report.bytes)}, {"checkpoint_seconds", event.report.seconds}});
}

void JsonLines::append(uint64_t step, const MetricsFile::Fields& fields) {
  if (!file_) return;
  try {
    file_->append(step, fields);
  } catch (const Error& error) {
    // Training continues without the metrics file.
    notice_(fmt::format("{}; the run goes on without it", error.what()));
    file_.reset();
  }
}

}  // namespace dtrain::observers
