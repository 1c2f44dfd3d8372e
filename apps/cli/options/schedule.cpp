// Learning rates.
#include "apps/cli/options/optimizer.h"

namespace dtrain::cli {

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
            "epochs of a linear rise from 0, with init_learning_rate or piecewise_learning_rate_schedule",
            kNotNegative);
  flags.add_choice("lr_schedule", lr_schedule, {"auto", "constant", "cosine", "polynomial"},
                   "auto: by the flags above; the others start from init_learning_rate");
  flags.add("end_learning_rate", end_learning_rate, "rate at which cosine and polynomial end", kNotNegative);
  flags.add("lr_power", lr_power, "exponent of polynomial", kNotNegative);
}

void ScheduleFlags::check(const FlagSet& flags) const {
  const bool decays = num_epochs_per_decay > 0 && learning_rate_decay_factor > 0 && init_learning_rate;
  const bool piecewise = !piecewise_learning_rate_schedule.empty(), named = lr_schedule != "auto";
  refuse({
      {piecewise && (init_learning_rate || num_epochs_per_decay > 0 || learning_rate_decay_factor > 0 ||
                     minimum_learning_rate > 0 || named),
       "--piecewise_learning_rate_schedule and another flag of the learning rate: at most one may be given"},
      {(num_epochs_per_decay > 0 || learning_rate_decay_factor > 0) && !decays,
       "--num_epochs_per_decay and --learning_rate_decay_factor need each other and --init_learning_rate"},
      {minimum_learning_rate > 0 && !decays,
       "--minimum_learning_rate needs --init_learning_rate, --num_epochs_per_decay and --learning_rate_decay_factor"},
      {num_learning_rate_warmup_epochs > 0 && !init_learning_rate && !piecewise,
       "--num_learning_rate_warmup_epochs needs --init_learning_rate or --piecewise_learning_rate_schedule"},
      {named && !init_learning_rate, "--lr_schedule needs --init_learning_rate"},
      {named && decays, "--lr_schedule and the flags of the exponential decay: at most one may be given"},
      {(flags.given("end_learning_rate") || flags.given("lr_power")) && lr_schedule != "cosine" &&
           lr_schedule != "polynomial",
       "--end_learning_rate and --lr_power need --lr_schedule=cosine or polynomial"},
  });
}

std::optional<Schedule> ScheduleFlags::schedule(double steps_per_epoch, uint64_t total_steps) const {
  if (piecewise_learning_rate_schedule.empty() && !init_learning_rate) return std::nullopt;
  Schedule schedule;
  if (!piecewise_learning_rate_schedule.empty()) {
    schedule = Schedule::parse_piecewise(piecewise_learning_rate_schedule, steps_per_epoch);
  } else {
    schedule.base = *init_learning_rate;
    schedule.steps_per_epoch = steps_per_epoch;
    if (num_epochs_per_decay > 0) {
      schedule.decay = Schedule::Decay::exponential;
      schedule.factor = learning_rate_decay_factor;
      schedule.decay_epochs = num_epochs_per_decay;
      schedule.floor = minimum_learning_rate;
    } else if (lr_schedule == "cosine" || lr_schedule == "polynomial") {
      schedule.decay = lr_schedule == "cosine" ? Schedule::Decay::cosine : Schedule::Decay::polynomial;
      schedule.floor = end_learning_rate;
      schedule.power = lr_power;
      schedule.total_steps = total_steps;
    }
  }
  schedule.warmup_epochs = num_learning_rate_warmup_epochs;
  return schedule;
}

}  // namespace dtrain::cli
