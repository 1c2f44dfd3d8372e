// Numbers of steps and the learning-rate schedule, by tf_cnn_benchmarks' rules.
#include "apps/cnn_benchmarks/plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace dtrain::cnn_benchmarks {
namespace {

constexpr int64_t kDefaultBatches = 100;

// Whole batches that hold `epochs` passes over `samples`, rounded up.
int64_t batches_of(double epochs, uint64_t samples, int64_t batch) {
  return (static_cast<int64_t>(epochs * static_cast<double>(samples)) + batch - 1) / batch;
}

int64_t length(std::optional<int64_t> batches, std::optional<double> epochs, uint64_t samples, int64_t batch) {
  if (epochs && *epochs > 0) return batches_of(*epochs, samples, batch);
  return batches.value_or(kDefaultBatches);
}

template <class T>
T parse_point(const std::string& text, const char* flag) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  DT_CHECK(error == std::errc() && end == text.data() + text.size() && value > 0, "--", flag,
           ": expected positive numbers with commas between them, found '", text, "'");
  return value;
}

std::set<uint64_t> evaluation_steps(const Config& config, const Plan& plan, uint64_t samples) {
  const Flags& f = config.flags;
  const int64_t batch = config.global_batch();
  std::set<uint64_t> steps;
  const auto add_epoch = [&](double epoch) { steps.insert(static_cast<uint64_t>(batches_of(epoch, samples, batch))); };
  if (f.eval_during_training_every_n_steps) {
    const auto n = static_cast<uint64_t>(*f.eval_during_training_every_n_steps);
    for (uint64_t step = n; step < plan.total_steps; step += n) steps.insert(step);
  }
  if (f.eval_during_training_every_n_epochs) {
    const double n = *f.eval_during_training_every_n_epochs;
    DT_CHECK(n * static_cast<double>(samples) >= 1, "--eval_during_training_every_n_epochs=", n,
             ": less than an image");
    const double end =
        static_cast<double>(plan.total_steps) * static_cast<double>(batch) / static_cast<double>(samples);
    for (int64_t i = 1; static_cast<double>(i) * n < end; ++i) add_epoch(static_cast<double>(i) * n);
  }
  for (const std::string& text : f.eval_during_training_at_specified_steps)
    steps.insert(parse_point<uint64_t>(text, "eval_during_training_at_specified_steps"));
  for (const std::string& text : f.eval_during_training_at_specified_epochs)
    add_epoch(parse_point<double>(text, "eval_during_training_at_specified_epochs"));
  return steps;
}

Schedule make_schedule(const Config& config, double steps_per_epoch, uint64_t total_steps) {
  const Flags& f = config.flags;
  if (f.piecewise_learning_rate_schedule.empty() && !f.init_learning_rate)
    return models::default_schedule(config.info, config.global_batch(), steps_per_epoch, f.resnet_base_lr);
  Schedule schedule;
  if (!f.piecewise_learning_rate_schedule.empty()) {
    schedule = Schedule::parse_piecewise(f.piecewise_learning_rate_schedule, steps_per_epoch);
  } else {
    schedule.base = *f.init_learning_rate;
    schedule.steps_per_epoch = steps_per_epoch;
    if (f.num_epochs_per_decay > 0) {
      schedule.decay = Schedule::Decay::exponential;
      schedule.factor = f.learning_rate_decay_factor;
      schedule.decay_epochs = f.num_epochs_per_decay;
      schedule.floor = f.minimum_learning_rate;
    } else if (f.lr_schedule == "cosine" || f.lr_schedule == "polynomial") {
      schedule.decay = f.lr_schedule == "cosine" ? Schedule::Decay::cosine : Schedule::Decay::polynomial;
      schedule.floor = f.end_learning_rate;
      schedule.power = f.lr_power;
      schedule.total_steps = total_steps;
    }
  }
  schedule.warmup_epochs = f.num_learning_rate_warmup_epochs;
  return schedule;
}

}  // namespace

Plan make_plan(const Config& config, const DatasetSizes& sizes) {
  const Flags& f = config.flags;
  const int64_t batch = config.global_batch();
  Plan plan;
  plan.num_batches = length(f.num_batches, f.num_epochs, sizes.training, batch);
  plan.total_steps = static_cast<uint64_t>(config.warmup_steps + plan.num_batches);
  plan.num_epochs =
      static_cast<double>(plan.num_batches) * static_cast<double>(batch) / static_cast<double>(sizes.training);

  // One pass at most, so that each image counts once.
  const bool own_length = f.num_eval_batches || f.num_eval_epochs;
  const int64_t eval_batch = config.global_eval_batch();
  plan.eval_batches = std::min(length(own_length ? f.num_eval_batches : f.num_batches,
                                      own_length ? f.num_eval_epochs : f.num_epochs, sizes.validation, eval_batch),
                               batches_of(1, sizes.validation, eval_batch));
  if (config.mode == RunMode::evaluation) {
    plan.num_batches = plan.eval_batches;
    plan.num_epochs = static_cast<double>(plan.eval_batches) * static_cast<double>(eval_batch) /
                      static_cast<double>(sizes.validation);
  }

  plan.eval_steps = evaluation_steps(config, plan, sizes.training);
  const double steps_per_epoch = static_cast<double>(sizes.training) / static_cast<double>(batch);
  plan.schedule = make_schedule(config, steps_per_epoch, plan.total_steps);
  plan.schedule.validate();
  return plan;
}

}  // namespace dtrain::cnn_benchmarks
