// Formats: see tf_cnn_benchmarks' benchmark_one_step and _eval_once.
#include "apps/observers/tf_cnn_log.h"

#include <utility>

#include <fmt/format.h>

namespace dtrain::observers {
namespace {

using Clock = std::chrono::steady_clock;

// The columns of classification are always present.
double value_of(const std::vector<MetricValue>& metrics, const std::string& name) {
  return find_metric(metrics, name).value_or(0);
}

// Metrics of multi-label classification, whose names begin with `prefix`.
std::string label_scores(const std::vector<MetricValue>& values, const std::string& prefix) {
  return fmt::format("mAP = {:.4f} F1 micro = {:.4f} macro = {:.4f}",
                     value_of(values, prefix + "mean_average_precision"), value_of(values, prefix + "micro_f1"),
                     value_of(values, prefix + "macro_f1"));
}

// "1:02:03".
std::string clock_time(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

void TfCnnLog::begun(const Begun& event) {
  statistics_.begun(event.step);
  if (!event.restored_from.empty())
    log_.extra(fmt::format("Restored step {} from {}", event.step, event.restored_from));
  if (!options_.weights_line.empty()) {
    if (event.step == 0)
      log_.extra(options_.weights_line);
    else
      log_.notice("--weights has no effect: the run continues from its checkpoint");
  }
  if (!event.schedule.empty()) log_.extra(fmt::format("Schedule:    {}", event.schedule));
  if (!event.update.empty()) log_.extra(fmt::format("Update:      {}", event.update));
  done_ = event.complete;
  if (!done_) log_.line("Running warm up");
}

void TfCnnLog::columns() {
  log_.line("Done warm up");
  log_.line(fmt::format("Step\tImg/sec\t{}{}", options_.base_loss ? "base_loss" : "total_loss",
                        options_.accuracies ? "\ttop_1_accuracy\ttop_5_accuracy" : ""));
}

void TfCnnLog::stepping(uint64_t) {
  if (statistics_.stepping()) columns();
}

void TfCnnLog::stepped(const Stepped& event) {
  if (statistics_.stepped(event)) columns();
  const Throughput& speed = statistics_.speed();
  if (!event.shown || speed.steps() == 0) return;
  const double loss = options_.base_loss ? event.loss : event.loss + event.l2_loss;
  std::string text =
      fmt::format("{}\timages/sec: {:.1f} +/- {:.1f} (jitter = {:.1f})\t{:.3f}",
                  event.step - options_.speed.warmup_steps, speed.speed(), speed.uncertainty(), speed.jitter(), loss);
  if (options_.accuracies)
    text += fmt::format("\t{:.3f}\t{:.3f}", value_of(event.metrics, "top_1_accuracy"),
                        value_of(event.metrics, "top_5_accuracy"));
  if (options_.eta_of > 0) text += fmt::format("\t{} left", clock_time(statistics_.seconds_until(options_.eta_of)));
  log_.line(text);
}

void TfCnnLog::evaluating(const Evaluating& event) {
  const Clock::time_point before = std::exchange(evaluation_shown_, Clock::now());
  if (event.batches > 0)
    log_.line(fmt::format(
        "{}\t{:.1f} examples/sec", event.batches,
        static_cast<double>(event.examples) / std::chrono::duration<double>(evaluation_shown_ - before).count()));
  else if (options_.trains)
    log_.line(fmt::format("{} evaluation at global_step {}", done_ ? "Running final" : "Running", event.step));
}

void TfCnnLog::evaluated(const Evaluated& event) {
  const double top_1 = value_of(event.result.values, "top_1_accuracy");
  if (find_metric(event.result.values, "mean_average_precision"))
    log_.line(fmt::format("{} [{} examples]", label_scores(event.result.values, ""), event.result.examples));
  else
    log_.line(fmt::format("Accuracy @ 1 = {:.4f} Accuracy @ 5 = {:.4f} [{} examples]", top_1,
                          value_of(event.result.values, "top_5_accuracy"), event.result.examples));
  if (const double left_out = value_of(event.result.values, "classes_without_positives"); left_out > 0)
    log_.extra(fmt::format("mAP and macro F1 leave out {:.0f} classes without positives", left_out));
  if (find_metric(event.result.values, "averaged_mean_average_precision"))
    log_.extra("Averaged parameters: " + label_scores(event.result.values, "averaged_"));
  if (find_metric(event.result.values, "averaged_top_1_accuracy"))
    log_.extra(fmt::format("Averaged parameters: Accuracy @ 1 = {:.4f} Accuracy @ 5 = {:.4f}",
                           value_of(event.result.values, "averaged_top_1_accuracy"),
                           value_of(event.result.values, "averaged_top_5_accuracy")));
  if (!options_.trains) total(static_cast<double>(event.result.examples) / event.result.seconds);
  if (options_.stop_at_top_1 && top_1 >= *options_.stop_at_top_1)
    log_.line(fmt::format("Stopping, as eval accuracy at least {} was reached", *options_.stop_at_top_1));
  else if (event.resumes)
    log_.line("Resuming training");
}

void TfCnnLog::total(double images_per_sec) {
  const std::string rule(64, '-');
  log_.line(rule);
  log_.line(fmt::format("total images/sec: {:.2f}", images_per_sec));
  log_.line(rule);
}

void TfCnnLog::ended(const Ended& event) {
  done_ = true;
  if (event.outcome == Outcome::stopped) return;
  const double elapsed = statistics_.elapsed();
  const double images = static_cast<double>(statistics_.speed().steps()) * options_.global_batch;
  if (options_.ends_with_evaluation)
    log_.line("Done with training");
  else
    total(elapsed > 0 ? images / elapsed : 0);
  summary();
}

}  // namespace dtrain::observers
