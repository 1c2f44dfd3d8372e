#include "libdtrain/train/trainer.h"

#include <algorithm>
#include <cmath>

#include "libdtrain/ops/step_metrics.h"

namespace dtrain {
namespace {

double sum_of_squares(Context& context, const Tensor& x) {
  std::vector<float> values(static_cast<size_t>(x.count()));
  context.download(x, values.data(), "worst_parameter");
  double sum = 0;
  for (float value : values) sum += static_cast<double>(value) * value;
  return sum;
}

// What of `names` is in `others` too; both in the order of registration.
void keep_common(std::vector<std::string>& names, const std::vector<std::string>& others) {
  std::erase_if(names, [&](const std::string& name) { return std::ranges::find(others, name) == others.end(); });
}

}  // namespace

Trainer::Trainer(ParameterStore& store, Optimizer& optimizer, Schedule schedule, TrainerOptions options)
    : store_(store), optimizer_(optimizer), schedule_(std::move(schedule)), options_(options) {
  DT_CHECK(options.micro_steps >= 1, "a step of ", options.micro_steps, " micro-steps");
  DT_CHECK(options.loss_scale > 0, "loss scale ", options.loss_scale, ": expected a positive number");
  schedule_.validate();
  DT_CHECK(options.double_loss_scale_after >= 0, "loss scale doubled every ", options.double_loss_scale_after,
           " steps");
  ring_ = store.context().zeros({static_cast<int64_t>(kRing), kStepMetrics});
  resume(0);
}

void Trainer::resume(uint64_t steps_done, const StepState& saved) {
  StepState state{.loss_scale = options_.loss_scale, .double_after = options_.double_loss_scale_after};
  if (state.double_after > 0 && saved.double_after > 0) {
    state.loss_scale = saved.loss_scale;
    state.good_steps = saved.good_steps;
  }
  state.skipped = saved.skipped;
  store_.context().set_step_state(state);
  steps_done_ = collected_ = steps_done;
}

void Trainer::enqueue(const Forward& forward) {
  Context& context = store_.context();
  context.set_scalars({.learning_rate = rate_of(steps_done_),
                       .gradient_scale = 1 / static_cast<float>(options_.micro_steps),
                       .step = steps_done_,
                       .seed = options_.seed});
  for (int micro_step = 0; micro_step < options_.micro_steps; ++micro_step) {
    Tape tape(context, Mode::train, micro_step);
    const Classification result = forward(tape, micro_step);
    add_step_metrics(context, result.loss.value, result.in_top_1, result.in_top_5, micro_step > 0, ring_);
    std::vector<std::string> unwritten = tape.backward(result.loss, &store_);
    if (micro_step == 0)
      unwritten_ = std::move(unwritten);
    else
      keep_common(unwritten_, unwritten);
  }
  optimizer_.step();
  finish_step_metrics(context, optimizer_.norm(), ring_);
  ++steps_done_;
}

std::vector<StepReport> Trainer::collect() {
  std::vector<float> rows(static_cast<size_t>(ring_.count()));
  store_.context().download(ring_, rows.data(), "step metrics");
  std::vector<StepReport> reports;
  if (steps_done_ - collected_ > kRing) collected_ = steps_done_ - kRing;
  for (; collected_ < steps_done_; ++collected_) {
    const float* row = &rows[collected_ % kRing * kStepMetrics];
    StepReport report;
    report.step = collected_ + 1;
    report.loss = row[kMetricLoss] / static_cast<float>(options_.micro_steps);
    report.learning_rate = rate_of(collected_);
    report.gradient_norm = row[kMetricNorm];
    report.top_1 = row[kMetricInTop1] / row[kMetricRows];
    report.top_5 = row[kMetricInTop5] / row[kMetricRows];
    report.finite = row[kMetricFinite] != 0;
    report.loss_scale = row[kMetricLossScale];
    report.skipped = static_cast<uint64_t>(row[kMetricSkipped]);
    reports.push_back(report);
  }
  return reports;
}

StepReport Trainer::step(const Forward& forward) {
  enqueue(forward);
  return collect().back();
}

std::string Trainer::worst_parameter() const {
  std::string worst;
  double largest = -1;
  for (const Parameter& parameter : store_.parameters()) {
    if (parameter.options.frozen) continue;
    const double squares = sum_of_squares(store_.context(), parameter.grad);
    if (!std::isfinite(squares)) return parameter.name;
    if (squares > largest) {
      largest = squares;
      worst = parameter.name;
    }
  }
  return worst;
}

}  // namespace dtrain
