// Learning rates.
#include "apps/cli/options/optimizer.h"

#include <cmath>

namespace dtrain::cli {
namespace {

// The rate and the warm-up of MLPerf's reference under LARS, where the user names none.
void take_mlperf_rates(Schedule& schedule, int64_t batch, std::optional<double> rate, double warmup_epochs) {
  const double peak = batch <= 4096 ? 5 : batch <= 8192 ? 10 : batch <= 16384 ? 25 : 33;
  schedule.base = rate.value_or(peak);
  schedule.warmup_epochs = warmup_epochs > 0 ? warmup_epochs : batch <= 16384 ? 5 : 25;
}

}  // namespace

void ScheduleFlags::declare(FlagSet& flags) {
  flags.group("Learning rate");
  flags.add("init_learning_rate", init_learning_rate,
            "initial learning rate; by default the model's own schedule is used", kNotNegative);
  flags.add("piecewise_learning_rate_schedule", piecewise_learning_rate_schedule,
            "LR0;E1;LR1;...;En;LRn: rate LRi from epoch Ei on");
  flags.add("num_epochs_per_decay", num_epochs_per_decay, "epochs between the drops of init_learning_rate",
            kNotNegative);
  flags.add("learning_rate_decay_factor", learning_rate_decay_factor, "factor of each drop", kNotNegative);
  flags.add("minimum_learning_rate", minimum_learning_rate, "rate at which the drops end", kNotNegative);
  flags.add("num_learning_rate_warmup_epochs", num_learning_rate_warmup_epochs,
            "epochs of a linear rise from warmup_learning_rate, with a rate that is given", kNotNegative);
  flags.add("warmup_learning_rate", warmup_learning_rate, "rate of the first step, see above", kNotNegative);
  flags.add("lr_reference_batch", lr_reference_batch,
            "init_learning_rate and piecewise_learning_rate_schedule are those of a global batch of so many images, "
            "and grow with it; 0: they are the rates themselves",
            kBatch);
  flags.add_choice("lr_schedule", lr_schedule, {"auto", "constant", "cosine", "polynomial", "mlperf_lars"},
                   "auto: by the flags above; mlperf_lars: polynomial from MLPerf's rates for lars, 5 up to a global "
                   "batch of 4096, 10 up to 8192, 25 up to 16384 and 33 beyond, after 5 epochs of warm-up, 25 beyond "
                   "16384; the others start from init_learning_rate");
  flags.add("end_learning_rate", end_learning_rate, "rate at which cosine, polynomial and mlperf_lars end",
            kNotNegative);
  flags.add("lr_power", lr_power, "exponent of polynomial and mlperf_lars", kNotNegative);
}

void ScheduleFlags::check(const FlagSet& flags) const {
  const bool decays = num_epochs_per_decay > 0 && learning_rate_decay_factor > 0 && init_learning_rate;
  const bool piecewise = !piecewise_learning_rate_schedule.empty(), named = lr_schedule != "auto";
  const bool has_rate = init_learning_rate || piecewise || lr_schedule == "mlperf_lars";
  refuse({
      {piecewise && (init_learning_rate || num_epochs_per_decay > 0 || learning_rate_decay_factor > 0 ||
                     minimum_learning_rate > 0 || named),
       "--piecewise_learning_rate_schedule and another flag of the learning rate: at most one may be given"},
      {(num_epochs_per_decay > 0 || learning_rate_decay_factor > 0) && !decays,
       "--num_epochs_per_decay and --learning_rate_decay_factor need each other and --init_learning_rate"},
      {minimum_learning_rate > 0 && !decays,
       "--minimum_learning_rate needs --init_learning_rate, --num_epochs_per_decay and --learning_rate_decay_factor"},
      {num_learning_rate_warmup_epochs > 0 && !has_rate,
       "--num_learning_rate_warmup_epochs needs --init_learning_rate or --piecewise_learning_rate_schedule"},
      {warmup_learning_rate > 0 && num_learning_rate_warmup_epochs == 0 && lr_schedule != "mlperf_lars",
       "--warmup_learning_rate needs --num_learning_rate_warmup_epochs"},
      {lr_reference_batch > 0 && !init_learning_rate && !piecewise,
       "--lr_reference_batch needs --init_learning_rate or --piecewise_learning_rate_schedule"},
      {named && !has_rate, "--lr_schedule needs --init_learning_rate"},
      {named && decays, "--lr_schedule and the flags of the exponential decay: at most one may be given"},
      {(flags.given("end_learning_rate") || flags.given("lr_power")) && lr_schedule != "cosine" &&
           lr_schedule != "polynomial" && lr_schedule != "mlperf_lars",
       "--end_learning_rate and --lr_power need --lr_schedule=cosine, polynomial or mlperf_lars"},
  });
}

Schedule ScheduleFlags::rule(double steps_per_epoch, uint64_t total_steps) const {
  if (!piecewise_learning_rate_schedule.empty())
    return Schedule::parse_piecewise(piecewise_learning_rate_schedule, steps_per_epoch);
  Schedule schedule;
  schedule.base = init_learning_rate.value_or(0);
  schedule.steps_per_epoch = steps_per_epoch;
  if (num_epochs_per_decay > 0) {
    schedule.decay = Schedule::Decay::exponential;
    schedule.factor = learning_rate_decay_factor;
    schedule.decay_epochs = num_epochs_per_decay;
    schedule.floor = minimum_learning_rate;
  } else if (lr_schedule != "auto" && lr_schedule != "constant") {
    schedule.decay = lr_schedule == "cosine" ? Schedule::Decay::cosine : Schedule::Decay::polynomial;
    schedule.floor = end_learning_rate;
    schedule.power = lr_power;
    schedule.total_steps = total_steps;
  }
  return schedule;
}

std::optional<Schedule> ScheduleFlags::schedule(double steps_per_epoch, uint64_t total_steps, int64_t batch) const {
  const bool by_batch = lr_schedule == "mlperf_lars";
  if (piecewise_learning_rate_schedule.empty() && !init_learning_rate && !by_batch) return std::nullopt;
  Schedule schedule = rule(steps_per_epoch, total_steps);
  schedule.warmup_epochs = num_learning_rate_warmup_epochs;
  schedule.warmup_start = warmup_learning_rate;
  if (by_batch) take_mlperf_rates(schedule, batch, init_learning_rate, num_learning_rate_warmup_epochs);
  // A short run, such as one that measures speed, may end in its warm-up.
  if (schedule.total_steps > 0 &&
      std::floor(schedule.warmup_epochs * steps_per_epoch) >= static_cast<double>(total_steps))
    schedule.decay = Schedule::Decay::constant;
  if (lr_reference_batch > 0) {
    const double growth = static_cast<double>(batch) / static_cast<double>(lr_reference_batch);
    schedule.base *= growth;
    for (double& rate : schedule.values) rate *= growth;
  }
  return schedule;
}

}  // namespace dtrain::cli
