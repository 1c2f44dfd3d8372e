#include "apps/observers/imagenet_main_log.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/observers/mlperf_line.h"

namespace dtrain::observers {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kModel[] = "resnet";

}  // namespace

void ImagenetMainLog::begin_cycle(uint64_t step) {
  log_.line("Starting a training cycle.");
  log_.line(mlperf_line(kModel, "train_epoch", std::llround(epochs(step))));
}

void ImagenetMainLog::begun(const Begun& event) {
  log_.line(mlperf_line(kModel, "run_start", nullptr));
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
  log_.line(mlperf_line(kModel, "eval_start", nullptr));
}

void ImagenetMainLog::evaluated(const Evaluated& event) {
  const auto value = [&](const char* name) { return find_metric(event.result.values, name).value_or(0); };
  const double top_1 = value("top_1_accuracy");
  log_.line(fmt::format("{{'accuracy': {:.6g}, 'accuracy_top_5': {:.6g}, 'loss': {:.6g}, 'global_step': {}}}", top_1,
                        value("top_5_accuracy"), value("loss"), event.step));
  log_.line(mlperf_line(kModel, "eval_accuracy", Json{{"epoch", epochs(event.step)}, {"value", top_1}}));
  log_.line(mlperf_line(kModel, "eval_stop", nullptr));
  success_ = options_.threshold && top_1 >= *options_.threshold;
  if (event.resumes)
    begin_cycle(event.step);
  else if (done_)
    stop();
}

// The last evaluation follows the end of training, unless an earlier one reached the target.
void ImagenetMainLog::ended(const Ended& event) {
  done_ = true;
  if (event.outcome != Outcome::finished) stop();
}

void ImagenetMainLog::stop() {
  log_.line(mlperf_line(kModel, "run_stop", Json{{"success", success_}}));
  log_.line(mlperf_line(kModel, "run_final", nullptr));
}

}  // namespace dtrain::observers
