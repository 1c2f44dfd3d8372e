#include "apps/observers/imagenet_main_log.h"

#include <chrono>

#include <fmt/format.h>

namespace dtrain::observers {

// ":::MLPv0.5.0 resnet 1537375353.747822046 (place) key: value", as MLPerf's compliance logging has it.
void ImagenetMainLog::tag(const std::string& key, const std::string& value) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  log_.line(fmt::format(":::MLPv0.5.0 resnet {:.9f} ({}) {}{}{}", now.count(), options_.program, key,
                        value.empty() ? "" : ": ", value));
}

void ImagenetMainLog::begin_cycle(uint64_t step) {
  log_.line("Starting a training cycle.");
  tag("train_epoch", fmt::format("{:.0f}", epochs(step)));
}

void ImagenetMainLog::begun(const Begun& event) {
  tag("run_start");
  if (!event.restored_from.empty())
    log_.line(fmt::format("INFO:tensorflow:Restoring parameters from {}", event.restored_from));
  if (!event.complete) begin_cycle(event.step);
}

void ImagenetMainLog::stepped(const Stepped& event) {
  interval_.add(event);
  if (!event.shown) return;
  const double seconds = interval_.seconds(), loss = event.loss + event.l2_loss;
  const double speed = interval_.take();
  if (std::exchange(first_, false)) {
    log_.line(fmt::format("INFO:tensorflow:loss = {:.6f}, step = {}", loss, event.step - 1));
    return;
  }
  log_.line(fmt::format("INFO:tensorflow:global_step/sec: {:.6g}", speed));
  log_.line(fmt::format("INFO:tensorflow:loss = {:.6f}, step = {} ({:.3f} sec)", loss, event.step, seconds));
}

void ImagenetMainLog::evaluating(const Evaluating& event) {
  if (event.batches > 0) return;
  log_.line("Starting to evaluate.");
  tag("eval_start");
}

void ImagenetMainLog::evaluated(const Evaluated& event) {
  const auto value = [&](const char* name) { return find_metric(event.result.values, name).value_or(0); };
  const double top_1 = value("top_1_accuracy");
  log_.line(fmt::format("{{'accuracy': {:.6g}, 'accuracy_top_5': {:.6g}, 'loss': {:.6g}, 'global_step': {}}}", top_1,
                        value("top_5_accuracy"), value("loss"), event.step));
  tag("eval_accuracy", fmt::format(R"({{"epoch": {:.6g}, "value": {:.6g}}})", epochs(event.step), top_1));
  tag("eval_stop");
  success_ = options_.threshold && top_1 >= *options_.threshold;
  if (event.resumes)
    begin_cycle(event.step);
  else if (done_)
    stop();
}

// The last evaluation comes after the end of the training, but for one that was good enough.
void ImagenetMainLog::ended(const Ended& event) {
  done_ = true;
  if (event.outcome != Outcome::finished) stop();
}

void ImagenetMainLog::stop() {
  tag("run_stop", fmt::format(R"({{"success": {}}})", success_));
  tag("run_final");
}

}  // namespace dtrain::observers
