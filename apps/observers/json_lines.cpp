#include "apps/observers/json_lines.h"

#include <fmt/format.h>

namespace dtrain::observers {

void JsonLines::begun(const Begun& event) {
  figures_.begun(event);
  if (!event.complete) file_.emplace(path_, event.step);
}

void JsonLines::stepping(uint64_t) { figures_.stepping(); }

void JsonLines::stepped(const Stepped& event) {
  const MetricsFile::Fields fields = figures_.stepped(event);
  if (!fields.empty()) append(event.step, fields);
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
    // What is learnt is worth more than the record of it.
    notice_(fmt::format("{}; the run goes on without it", error.what()));
    file_.reset();
  }
}

}  // namespace dtrain::observers
