#include "apps/mask_rcnn/training_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/cli/range.h"
#include "dtrain/core/error.h"

namespace dtrain::mask_rcnn {
namespace {

const char* unit_of(const RateSettings& rate) { return rate.in_epochs ? "epoch" : "step"; }
const char* key_of(const RateSettings& rate) {
  return rate.in_epochs ? "TRAIN.LR_EPOCH_SCHEDULE" : "TRAIN.LR_SCHEDULE";
}

// Converts a time of the schedule to a step.
int64_t step_of(const Settings& settings, double time, int64_t batch) {
  const RateSettings& rate = settings.rate;
  DT_CHECK(time >= 0 && std::isfinite(time), key_of(rate), ": ", time, " is not a time");
  const double steps = rate.in_epochs
                           ? time * static_cast<double>(settings.epoch_steps(batch))
                           : time * static_cast<double>(RateSettings::kScheduleBatch) / static_cast<double>(batch);
  DT_CHECK(steps <= static_cast<double>(cli::kMostSteps), key_of(rate), ": ", unit_of(rate), " ", time, " is step ",
           steps, " at batch ", batch, ", more than ", cli::kMostSteps);
  return static_cast<int64_t>(steps);
}

// Checks that drops and end are increasing.
std::vector<double> times_of(const RateSettings& rate) {
  std::vector<double> times;
  for (const RateDrop& drop : rate.drops) times.push_back(drop.after);
  times.push_back(rate.end);
  double before = 0;
  for (const double time : times) {
    DT_CHECK(before < time, key_of(rate), ": ", unit_of(rate), " ", time, " does not come after ", before);
    before = time;
  }
  return times;
}

// `steps`: of the drops and, last, of the end.
void check_warmup(int64_t warmup, const std::vector<int64_t>& steps, int64_t batch) {
  DT_CHECK(warmup < steps.back(), "TRAIN.WARMUP=", warmup, ": the training has ", steps.back(), " steps at batch ",
           batch, ", expected more than the warm-up");
  DT_CHECK(warmup <= steps.front(), "TRAIN.WARMUP=", warmup, ": the rate drops after ", steps.front(),
           " steps at batch ", batch, ", within the warm-up");
}

// Steps of the drops and, last, of the end: increasing, and after the warm-up.
std::vector<int64_t> schedule_steps(const Settings& settings, int64_t batch) {
  const RateSettings& rate = settings.rate;
  std::vector<int64_t> steps;
  for (const double time : times_of(rate)) {
    const int64_t step = step_of(settings, time, batch), before = steps.empty() ? 0 : steps.back();
    DT_CHECK(step > before, key_of(rate), ": ", unit_of(rate), " ", time, " is at step ", step, " at batch ", batch,
             ", expected a step after ", before);
    steps.push_back(step);
  }
  check_warmup(rate.warmup_steps, steps, batch);
  return steps;
}

Schedule schedule_of(const RateSettings& rate, double base, const std::vector<int64_t>& steps) {
  Schedule schedule{.base = base,
                    .warmup_epochs = static_cast<double>(rate.warmup_steps),
                    .warmup_start = rate.warmup_rate,
                    .total_steps = static_cast<uint64_t>(steps.back())};
  if (!rate.drops.empty()) schedule.decay = Schedule::Decay::piecewise;
  for (size_t i = 0; i < rate.drops.size(); ++i) {
    schedule.boundaries.push_back(static_cast<double>(steps[i]));
    schedule.values.push_back(base * rate.drops[i].factor);
  }
  schedule.validate();
  return schedule;
}

}  // namespace

TrainingSchedule::TrainingSchedule(const Settings& settings, int64_t batch, std::optional<uint64_t> length)
    : rate_(settings.rate), batch_(batch) {
  DT_CHECK(batch > 0, "learning rate for a batch of ", batch, " images: expected at least one");
  DT_CHECK(rate_.reference_batch > 0, "TRAIN.LR_REFERENCE_BATCH=", rate_.reference_batch, ": expected at least 1");
  DT_CHECK(rate_.warmup_steps >= 0, "TRAIN.WARMUP=", rate_.warmup_steps, ": expected 0 or more steps");
  epoch_steps_ = settings.epoch_steps(batch);
  if (length)
    stretch(static_cast<int64_t>(*length));
  else
    steps_ = schedule_steps(settings, batch);
  const double scale = static_cast<double>(batch) / static_cast<double>(rate_.reference_batch);
  learning_rate_ = schedule_of(rate_, rate_.base_rate * scale, steps_);
}

void TrainingSchedule::stretch(int64_t length) {
  DT_CHECK(length > 0 && length <= cli::kMostSteps, "a schedule of ", length, " steps, expected 1 to ",
           cli::kMostSteps);
  times_of(rate_);
  const double end =
      static_cast<double>(length) *
      (rate_.in_epochs ? 1 / static_cast<double>(epoch_steps_)
                       : static_cast<double>(batch_) / static_cast<double>(RateSettings::kScheduleBatch));
  std::vector<RateDrop> drops;
  for (const RateDrop& drop : rate_.drops) {
    const double share = drop.after / rate_.end;
    const int64_t step = std::max<int64_t>(static_cast<int64_t>(share * static_cast<double>(length)), 1);
    if (step >= length) break;
    if (!steps_.empty() && step <= steps_.back()) drops.pop_back(), steps_.pop_back();
    drops.push_back({share * end, drop.factor});
    steps_.push_back(step);
  }
  rate_.drops = drops;
  rate_.end = end;
  if (rate_.fits_warmup)
    rate_.warmup_steps = std::min(rate_.warmup_steps, steps_.empty() ? length - 1 : steps_.front());
  steps_.push_back(length);
  check_warmup(rate_.warmup_steps, steps_, batch_);
}

TrainingSchedule make_schedule(const Settings& settings, const cli::RunFlags& flags, uint64_t images, int64_t batch) {
  if (!flags.num_epochs) {
    const bool is_longer = flags.num_batches && settings.rate.of_preset &&
                           *flags.num_batches > step_of(settings, settings.rate.end, batch);
    return is_longer ? TrainingSchedule(settings, batch, static_cast<uint64_t>(*flags.num_batches))
                     : TrainingSchedule(settings, batch);
  }
  return {settings, batch, static_cast<uint64_t>(cli::batches_of(*flags.num_epochs, images, batch))};
}

uint64_t steps_of(const TrainingSchedule& schedule, const cli::RunFlags& flags) {
  uint64_t steps = schedule.steps();
  if (flags.num_batches) steps = static_cast<uint64_t>(*flags.num_batches);
  if (flags.max_train_steps) steps = std::min(steps, static_cast<uint64_t>(*flags.max_train_steps));
  return steps;
}

std::vector<std::string> TrainingSchedule::lines() const {
  std::string drops = "schedule: ";
  for (size_t i = 0; i < rate_.drops.size(); ++i)
    drops += fmt::format("x{:g} from step {} ({} {:g}), ", rate_.drops[i].factor, steps_[i], unit_of(rate_),
                         rate_.drops[i].after);
  drops += fmt::format("end at step {} ({} {:g})", steps_.back(), unit_of(rate_), rate_.end);
  if (!rate_.in_epochs) drops += fmt::format("; in brackets at batch {}", RateSettings::kScheduleBatch);
  const std::string warmup = rate_.warmup_steps > 0
                                 ? fmt::format("linear from {:g} over {} steps", rate_.warmup_rate, rate_.warmup_steps)
                                 : "none";
  return {fmt::format("learning rate: {:g} for {} images a step, {:g} for {}", learning_rate_.base, batch_,
                      rate_.base_rate, rate_.reference_batch),
          "warm-up: " + warmup, drops, fmt::format("epoch: {} steps", epoch_steps_)};
}

}  // namespace dtrain::mask_rcnn
