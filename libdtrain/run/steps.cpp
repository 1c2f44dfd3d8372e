// Sequence of a step: upload of batches, the step itself, and later its report.
#include "libdtrain/run/steps.h"

#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "dtrain/run/elastic.h"
#include "libdtrain/run/faults.h"

namespace dtrain {

Steps::Steps(Task& task, Trainer& trainer, Group& group, const RunOptions& options)
    : task_(task), trainer_(trainer), group_(group), options_(options), buckets_(trainer.options().buckets) {
  if (options.tune_buckets && group.size() > 1 && !trainer.options().independent)
    tuner_.emplace(buckets_, static_cast<int64_t>(trainer.store().grads().bytes()));
}

void Steps::describe(TrainState& state) const {
  state.cursor = cursor_;
  state.device = trainer_.step_state();
  if (group_.size() > 1) describe_sums(state);
}

void Steps::describe_sums(TrainState& state) const {
  // Sizes under trial are not saved.
  for (const auto& [key, value] : summation_settings(trainer_.options().communicator->options(), buckets_)) {
    if (tuner_ && key.find("bucket") != std::string::npos)
      state.settings.erase(key);
    else
      state.settings[key] = value;
  }
}

void Steps::enqueue(bool shown, bool asks) {
  const bool first = !opened_;
  if (first) task_.open(cursor_);
  opened_ = true;
  try {
    if (tuner_) trainer_.set_buckets(tuner_->next());
    const bool faulty = options_.faults && options_.faults->breaks_all_reduce(enqueued() + 1);
    send({.l2_loss = shown, .asks = asks, .capture = !tuner_ && !faulty});
    if (first) context().synchronize("the first step");
  } catch (const Error& error) {
    if (!first || error.fault() != Fault::resource || context().is_cpu() || !options_.advice_on_memory) throw;
    throw Error(error.fault(), error.what() + options_.advice_on_memory());
  }
}

void Steps::send(StepRequest request) {
  const auto began = std::chrono::steady_clock::now();
  if (options_.faults) options_.faults->begin_step(enqueued() + 1, trainer_.store());
  Sent sent;
  for (int i = 0; i < trainer_.options().micro_steps; ++i) {
    const BatchInfo batch = task_.load(i);
    sent.samples.insert(sent.samples.end(), batch.samples.begin(), batch.samples.end());
    cursor_ = batch.cursor;
    if (!batch.signature.empty()) request.signature += batch.signature + ";";
  }
  sent.wait_seconds = task_.wait_seconds();
  trainer_.enqueue([this](Tape& tape, int micro_step) { return task_.forward(tape, micro_step); }, request);
  sent.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  sent_.push_back(std::move(sent));
}

std::vector<Steps::Done> Steps::finished(uint64_t leave) {
  std::vector<Done> all;
  for (StepReport& report : trainer_.collect(tuner_ ? 0 : leave)) {
    const Sent sent = std::move(sent_.front());
    sent_.pop_front();
    if (!report.finite) report_divergence(report, sent);
    const double own = own_seconds(report.times, sent.seconds);
    if (options_.faults) options_.faults->end_step(own);
    if (tuner_) tune(report.times.step);
    all.push_back({std::move(report), sent.wait_seconds, own});
  }
  return all;
}

// A CPU computes while the step is enqueued; a GPU afterwards.
double Steps::own_seconds(const StepTimes& times, double host) const {
  return (context().is_cpu() ? host : times.before + times.step) - times.reduce;
}

void Steps::tune(double seconds) {
  tuner_->add(seconds);
  if (!tuner_->done()) return;
  buckets_ = tuner_->choose(group_);
  tuner_.reset();
  trainer_.set_buckets(buckets_);
  context().notices().push_back(fmt::format("gradient buckets of {} MiB are the fastest and are used from here on",
                                            static_cast<double>(buckets_.bytes) / (1 << 20)));
}

// The worst layer is taken from the last enqueued step, on a GPU possibly a later one: no update follows the diverged
// step, so later ones diverge at the same place.
void Steps::report_divergence(const StepReport& report, const Sent& sent) const {
  throw Error(Fault::numeric,
              fmt::format("step {}: not finite: loss {}, learning rate {}, worst layer {}, samples {}; the update was "
                          "not applied; a lower learning rate or clipping the gradient's norm may help",
                          report.step, std::isnan(report.loss) ? std::abs(report.loss) : report.loss,
                          report.learning_rate, trainer_.worst_parameter(),
                          sent.samples.empty() ? "synthetic" : fmt::format("{}", fmt::join(sent.samples, " "))));
}

}  // namespace dtrain
