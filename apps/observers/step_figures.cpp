#include "apps/observers/step_figures.h"

namespace dtrain::observers {

void StepFigures::begun(const Begun& event) {
  statistics_.begun(event.step);
  shown_.step = event.step;
  if (!event.complete && options_.flops > 0 && options_.peak) peak_ = options_.peak();
}

void StepFigures::remember() {
  shown_.step = statistics_.step();
  shown_.wait = statistics_.wait_seconds();
  shown_.elapsed = statistics_.elapsed();
  shown_.times = statistics_.times();
}

void StepFigures::stepping() {
  if (statistics_.stepping()) remember();
}

MetricsFile::Fields StepFigures::stepped(const Stepped& event) {
  if (statistics_.stepped(event)) remember();
  if (!event.shown || !statistics_.timing() || statistics_.speed().steps() == 0) return {};
  MetricsFile::Fields fields = fields_of(event);
  remember();
  if (statistics_.sums().steps > shown_.sums.steps) shown_.sums = statistics_.sums();
  return fields;
}

MetricsFile::Fields StepFigures::fields_of(const Stepped& event) const {
  MetricsFile::Fields fields{
      {"loss", event.loss}, {"total_loss", event.loss + event.l2_loss}, {"learning_rate", event.learning_rate}};
  for (const MetricValue& metric : event.metrics) fields.emplace_back(metric.name, metric.value);
  fields.emplace_back("images_per_sec", statistics_.speed().speed());
  add_times(fields);
  add_performance(fields);
  if (options_.loss_scale) {
    fields.emplace_back("loss_scale", event.loss_scale);
    fields.emplace_back("skipped_updates", static_cast<double>(event.skipped));
  }
  if (event.slowest.factor > 0) {
    fields.emplace_back("slowest_rank", event.slowest.rank);
    fields.emplace_back("slowest_rank_factor", event.slowest.factor);
  }
  add_sums(fields);
  return fields;
}

void StepFigures::add_times(MetricsFile::Fields& fields) const {
  const auto steps = static_cast<double>(statistics_.step() - shown_.step);
  fields.emplace_back("data_wait_ms", 1e3 * (statistics_.wait_seconds() - shown_.wait) / steps);
  const auto add = [&](const char* name, double StepTimes::*part) {
    fields.emplace_back(name, 1e3 * (statistics_.times().*part - shown_.times.*part) / steps);
  };
  add("forward_ms", &StepTimes::forward);
  add("backward_ms", &StepTimes::backward);
  if (options_.sums) add("wait_for_sums_ms", &StepTimes::reduce);
  add("update_ms", &StepTimes::update);
  if (options_.gpu) add("between_steps_ms", &StepTimes::before);
}

void StepFigures::add_performance(MetricsFile::Fields& fields) const {
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

void StepFigures::add_sums(MetricsFile::Fields& fields) const {
  const StepStatistics::Sums &now = statistics_.sums(), &before = shown_.sums;
  if (now.steps <= before.steps) return;
  const auto summed = static_cast<double>(now.steps - before.steps);
  fields.emplace_back("all_reduce_ms", 1e3 * (now.times.busy - before.times.busy) / summed);
  fields.emplace_back("all_reduce_exposed_ms", 1e3 * (now.times.exposed - before.times.exposed) / summed);
  fields.emplace_back("all_reduce_bytes", (now.times.bytes - before.times.bytes) / summed);
}

}  // namespace dtrain::observers
