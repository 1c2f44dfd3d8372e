// The order of a step: batches to the device, the step itself, and later its report.
#include "apps/cnn_benchmarks/steps.h"

#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "apps/cnn_benchmarks/elastic.h"
#include "apps/cnn_benchmarks/memory_fit.h"

namespace dtrain::cnn_benchmarks {
namespace {

TrainerOptions trainer_options(const Session& session) {
  const Config& config = session.config;
  const Flags& f = config.flags;
  TrainerOptions options;
  if (config.sums()) options.communicator = session.communicator.get();
  options.buckets = config.distribution.buckets;
  options.independent = config.distribution.independent;
  options.equal_statistics = f.sync_batch_norm;
  options.micro_steps = static_cast<int>(f.gradient_accumulation);
  options.seed = static_cast<uint64_t>(f.tf_random_seed);
  options.cuda_graph = f.cuda_graph;
  if (config.machine.precision == DType::f16) {
    constexpr double kLossScale = 128;  // tf_cnn_benchmarks' of all its models
    options.loss_scale = static_cast<float>(f.fp16_loss_scale.value_or(kLossScale));
    if (f.fp16_enable_auto_loss_scale)
      options.double_loss_scale_after = static_cast<int>(f.fp16_inc_loss_scale_every_n);
  }
  return options;
}

}  // namespace

Steps::Steps(Session& session)
    : session_(session),
      optimizer_(session.store, optimizer_options(session.config.flags)),
      trainer_(session.store, optimizer_, session.plan.schedule, trainer_options(session)),
      buckets_(session.config.distribution.buckets) {
  const Config& config = session.config;
  if (config.distribution.autotune && config.ranks.size > 1 && !config.distribution.independent)
    tuner_.emplace(buckets_, static_cast<int64_t>(session.store.grads().bytes()));
}

void Steps::resume(const TrainState& state) {
  trainer_.resume(state.step, state.device);
  cursor_ = state.cursor;
}

void Steps::describe(TrainState& state) const {
  state.cursor = cursor_;
  state.device = trainer_.step_state();
  if (session_.config.ranks.size == 1) return;
  // What is only tried is not kept by the run that goes on from here.
  for (const auto& [key, value] : summation_settings(session_.config.distribution.gradients, buckets_)) {
    if (tuner_ && key.find("bucket") != std::string::npos)
      state.settings.erase(key);
    else
      state.settings[key] = value;
  }
}

void Steps::queue(bool l2_loss, bool asks) {
  const bool first = !input_;
  if (first)
    input_ = Input::training(*session_.context, session_.config, session_.datasets, session_.pixels(), cursor_);
  try {
    if (tuner_) trainer_.set_buckets(tuner_->next());
    const bool faulty = session_.faults.meddles_with_sums(queued() + 1);
    send({.l2_loss = l2_loss, .asks = asks, .record = !tuner_ && !faulty});
    if (first) session_.context->synchronize("the first step");
  } catch (const Error& error) {
    if (!first || error.fault() != Fault::resource || session_.context->is_cpu()) throw;
    throw Error(error.fault(), error.what() + advice_on_memory(session_));
  }
}

void Steps::send(const StepRequest& request) {
  const auto began = std::chrono::steady_clock::now();
  session_.faults.begin_step(queued() + 1, session_.store);
  batches_.clear();
  Sent sent;
  for (int64_t i = 0; i < session_.config.flags.gradient_accumulation; ++i) {
    const data::Batch& batch = batches_.emplace_back(*input_->next());
    sent.samples.insert(sent.samples.end(), batch.samples.begin(), batch.samples.end());
    cursor_ = batch.cursor;
  }
  sent.wait_seconds = input_->wait_seconds();
  trainer_.enqueue(
      [&](Tape& tape, int micro_step) { return session_.forward(tape, batches_[static_cast<size_t>(micro_step)]); },
      request);
  sent.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  sent_.push_back(std::move(sent));
}

std::vector<StepFigures> Steps::finished(uint64_t leave) {
  std::vector<StepFigures> all;
  for (const StepReport& report : trainer_.collect(tuner_ ? 0 : leave)) {
    const Sent sent = std::move(sent_.front());
    sent_.pop_front();
    if (!report.finite) report_divergence(report, sent);
    StepFigures& figures = all.emplace_back();
    figures.step = report.step;
    figures.loss = report.loss;
    figures.l2 = report.l2_loss;
    figures.learning_rate = report.learning_rate;
    figures.accuracy = {report.metric("top_1_accuracy"), report.metric("top_5_accuracy"),
                        static_cast<uint64_t>(session_.config.global_batch())};
    figures.wait_seconds = sent.wait_seconds;
    figures.times = report.times;
    figures.own_seconds = own_seconds(report.times, sent.seconds);
    session_.faults.end_step(figures.own_seconds);
    figures.bytes = report.bytes;
    figures.loss_scale = report.loss_scale;
    figures.requests = report.requests;
    figures.skipped = report.skipped;
    if (tuner_) tune(report.times.step);
  }
  return all;
}

// A CPU computes while the step is queued; a GPU later.
double Steps::own_seconds(const StepTimes& times, double host) const {
  return (session_.context->is_cpu() ? host : times.before + times.step) - times.reduce;
}

void Steps::tune(double seconds) {
  tuner_->add(seconds);
  if (!tuner_->done()) return;
  buckets_ = tuner_->choose(session_.group);
  tuner_.reset();
  trainer_.set_buckets(buckets_);
  session_.context->notices().push_back(
      fmt::format("--autotune_buckets: --bucket_mb={} from here on", static_cast<double>(buckets_.bytes) / (1 << 20)));
}

// The layer is the worst of the last queued step, which on a GPU may be a later one: after the one that is told of
// nothing is updated any more, so it diverges at the same place.
void Steps::report_divergence(const StepReport& report, const Sent& sent) const {
  throw Error(Fault::numeric,
              fmt::format("step {}: not finite: loss {}, learning rate {}, worst layer {}, samples {}; the update was "
                          "not applied; a lower --init_learning_rate or --gradient_clip_norm may help",
                          report.step, std::isnan(report.loss) ? std::abs(report.loss) : report.loss,
                          report.learning_rate, trainer_.worst_parameter(),
                          sent.samples.empty() ? "synthetic" : fmt::format("{}", fmt::join(sent.samples, " "))));
}

}  // namespace dtrain::cnn_benchmarks
