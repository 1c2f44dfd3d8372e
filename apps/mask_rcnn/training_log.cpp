#include "apps/mask_rcnn/training_log.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace dtrain::mask_rcnn {
namespace {

// Reason for an undefined COCO metric.
std::string why_absent(const std::string& name) {
  const std::string area = name.substr(name.rfind('/') + 1);
  return area.starts_with("IoU=") ? "no ground truth" : "no ground truth of area " + area;
}

}  // namespace

void EvaluationLines::evaluating(const Evaluating& event) {
  if (event.batches == 0) done_ = tenths_ = 0;
  done_ = std::min(done_ + static_cast<uint64_t>(event.examples), images_);
  const uint64_t tenths = images_ > 0 ? 10 * done_ / images_ : 0;
  if (tenths == std::exchange(tenths_, tenths)) return;
  log_.line(fmt::format("evaluating: {} of {} images", done_, images_));
}

TrainingLog::TrainingLog(cli::Log& log, double images, uint64_t steps, uint64_t evaluated)
    : log_(log), images_(images), steps_(steps), evaluation_(log, evaluated) {}

void TrainingLog::begun(const Begun& event) {
  if (!event.restored_from.empty()) log_.line(fmt::format("Restored step {} from {}", event.step, event.restored_from));
  log_.line("Schedule:    " + event.schedule);
  log_.line("Update:      " + event.update);
}

void TrainingLog::stepped(const Stepped& event) {
  ++counted_;
  seconds_ += event.seconds;
  if (!event.shown) return;
  std::string line = fmt::format("step {}/{}  loss {:.4f}", event.step, steps_, event.loss);
  for (const MetricValue& metric : event.metrics) line += fmt::format("  {} {:.4f}", metric.name, metric.value);
  line += fmt::format("  rate {:.6g}  {:.2f} images/s", event.learning_rate,
                      images_ * static_cast<double>(counted_) / seconds_);
  log_.line(line);
  counted_ = 0;
  seconds_ = 0;
}

std::vector<std::string> lines_of(const Evaluation& evaluation) {
  std::vector<std::string> lines;
  for (const MetricValue& value : evaluation.values)
    lines.push_back(value.value == -1 ? fmt::format("{}: -1 ({})", value.name, why_absent(value.name))
                                      : fmt::format("{}: {:.4f}", value.name, value.value));
  return lines;
}

void TrainingLog::evaluated(const Evaluated& event) {
  for (const std::string& line : lines_of(event.result)) log_.line(fmt::format("step {}  {}", event.step, line));
  if (event.suffices) log_.line("the targets are reached: training ends");
}

void EvaluationLog::evaluated(const Evaluated& event) {
  for (const std::string& line : lines_of(event.result)) log_.line(line);
}

void TrainingLog::saved(const Saved& event) { log_.line(fmt::format("saved {}", event.report.path)); }

void TrainingLog::ended(const Ended& event) {
  if (event.outcome == Outcome::finished) log_.line(fmt::format("finished after step {}", event.step));
}

}  // namespace dtrain::mask_rcnn
