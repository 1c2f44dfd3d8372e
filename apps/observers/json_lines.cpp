#include "apps/observers/json_lines.h"

#include <fmt/format.h>

namespace dtrain::observers {

void JsonLines::begun(const Begun& event) {
  statistics_.begun(event.step);
  shown_.step = event.step;
  if (event.complete) return;
  file_.emplace(options_.path, event.step);
  if (options_.flops > 0 && options_.peak) peak_ = options_.peak();
}

// Means are of the steps since the last shown one, or since timing began.
void JsonLines::remember() {
  shown_.step = statistics_.step();
  shown_.wait = statistics_.wait_seconds();
  shown_.elapsed = statistics_.elapsed();
  shown_.times = statistics_.times();
}

void JsonLines::stepping(uint64_t) {
  if (statistics_.stepping()) remember();
}

void JsonLines::stepped(const Stepped& event) {
  if (statistics_.stepped(event)) remember();
  if (!event.shown || !statistics_.timing() || statistics_.speed().steps() == 0) return;
  append(event.step, fields_of(event));
  remember();
}

MetricsFile::Fields JsonLines::fields_of(const Stepped& event) {
  const auto steps = static_cast<double>(event.step - shown_.step);
  MetricsFile::Fields fields{
      {"loss", event.loss}, {"total_loss", event.loss + event.l2_loss}, {"learning_rate", event.learning_rate}};
  for (const MetricValue& metric : event.metrics) fields.emplace_back(metric.name, metric.value);
  fields.emplace_back("images_per_sec", statistics_.speed().speed());
  fields.emplace_back("data_wait_ms", 1e3 * (statistics_.wait_seconds() - shown_.wait) / steps);
  const auto add_time = [&](const char* name, double StepTimes::*part) {
    fields.emplace_back(name, 1e3 * (statistics_.times().*part - shown_.times.*part) / steps);
  };
  add_time("forward_ms", &StepTimes::forward);
  add_time("backward_ms", &StepTimes::backward);
  if (options_.sums) add_time("wait_for_sums_ms", &StepTimes::reduce);
  add_time("update_ms", &StepTimes::update);
  if (options_.gpu) add_time("between_steps_ms", &StepTimes::before);
  add_performance(fields);
  if (options_.loss_scale) {
    fields.emplace_back("loss_scale", event.loss_scale);
    fields.emplace_back("skipped_updates", static_cast<double>(event.skipped));
  }
  if (event.slowest.factor > 0) {
    fields.emplace_back("slowest_rank", event.slowest.rank);
    fields.emplace_back("slowest_rank_factor", event.slowest.factor);
  }
  const StepStatistics::Sums &now = statistics_.sums(), &before = shown_.sums;
  if (now.steps > before.steps) {
    const auto summed = static_cast<double>(now.steps - before.steps);
    fields.emplace_back("all_reduce_ms", 1e3 * (now.times.busy - before.times.busy) / summed);
    fields.emplace_back("all_reduce_exposed_ms", 1e3 * (now.times.exposed - before.times.exposed) / summed);
    fields.emplace_back("all_reduce_bytes", (now.times.bytes - before.times.bytes) / summed);
    shown_.sums = now;
  }
  return fields;
}

void JsonLines::add_performance(MetricsFile::Fields& fields) const {
  const double elapsed = statistics_.elapsed() - shown_.elapsed;
  if (elapsed > 0) fields.emplace_back("data_wait_share", (statistics_.wait_seconds() - shown_.wait) / elapsed);
  const auto steps = static_cast<double>(statistics_.step() - shown_.step);
  const double computing = statistics_.times().step - shown_.times.step;
  if (options_.flops > 0 && computing > 0) {
    const double flops = options_.flops * steps / computing;
    fields.emplace_back("model_flops_per_sec", flops);
    if (peak_ > 0) fields.emplace_back("model_flops_utilization", flops / peak_);
  }
  if (options_.total_steps > 0) fields.emplace_back("seconds_left", statistics_.seconds_until(options_.total_steps));
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
