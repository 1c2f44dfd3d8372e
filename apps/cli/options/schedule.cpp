// Learning rates.
#include "apps/cli/options/optimizer.h"

#include <algorithm>
#include <cmath>

namespace dtrain::cli {
namespace {

using Decay = Schedule::Decay;

struct Named {
  const char* name;
  Decay decay;
};
constexpr Named kNamed[] = {{"constant", Decay::constant},
                            {"cosine", Decay::cosine},
                            {"polynomial", Decay::polynomial},
                            {"poly_cycle", Decay::polynomial_cycle},
                            {"cosine_restarts", Decay::cosine_restarts},
                            {"linear_cosine", Decay::linear_cosine},
                            {"mlperf_lars", Decay::polynomial}};

// Learning rate and warm-up of MLPerf's LARS reference, unless the user sets them.
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
            "LR0;E1;LR1;...;En;LRn: learning rate LRi from epoch Ei on");
  flags.add("lr_decay_lrs", lr_decay_lrs,
            "LR0,LR1,...,LRn: learning rate LRi from epoch Ei of lr_decay_epochs on, or without lr_decay_epochs in "
            "epoch i (from 0)");
  flags.add("lr_decay_epochs", lr_decay_epochs, "E1,...,En: see lr_decay_lrs");
  flags.add("num_epochs_per_decay", num_epochs_per_decay, "epochs between decays of the learning rate", kNotNegative);
  flags.add("learning_rate_decay_factor", learning_rate_decay_factor, "factor of each decay", kNotNegative);
  flags.add("lr_staircase", lr_staircase, "decay in discrete steps; false: continuously");
  flags.add("minimum_learning_rate", minimum_learning_rate, "lower limit of the decay", kNotNegative);
  flags.add("num_learning_rate_warmup_epochs", num_learning_rate_warmup_epochs,
            "epochs of linear warm-up from warmup_learning_rate; needs a flag that sets the learning rate",
            kNotNegative);
  flags.add("warmup_learning_rate", warmup_learning_rate, "learning rate of the first warm-up step", kNotNegative);
  flags.add("lr_reference_batch", lr_reference_batch,
            "global batch size that the learning rates above refer to: they are scaled linearly with the batch; 0: no "
            "scaling",
            kBatch);
  std::vector<std::string> names{"auto"};
  for (const Named& named : kNamed) names.emplace_back(named.name);
  flags.add_choice("lr_schedule", lr_schedule, names,
                   "auto: by the flags above; mlperf_lars: polynomial decay from MLPerf's LARS rates (5 up to a global "
                   "batch of 4096, 10 up to 8192, 25 up to 16384, 33 beyond) after 5 epochs of warm-up (25 beyond "
                   "16384); the others start from init_learning_rate");
  flags.add("end_learning_rate", end_learning_rate,
            "final learning rate of cosine and polynomial, and of each cycle of poly_cycle and cosine_restarts",
            kNotNegative);
  flags.add("lr_power", lr_power, "exponent of polynomial and poly_cycle", kNotNegative);
  flags.add("lr_cycle_epochs", lr_cycle_epochs,
            "epochs of a cycle of poly_cycle, and of the first cycle of cosine_restarts", kNotNegative);
  flags.add("lr_t_mul", lr_t_mul, "cosine_restarts: factor from one cycle's length to the next",
            {1, kNotNegative.high});
  flags.add("lr_m_mul", lr_m_mul, "cosine_restarts: factor from one cycle's initial learning rate to the next",
            kNotNegative);
  flags.add("lr_periods", lr_periods,
            "linear_cosine: rate * ((lr_alpha + 1 - t) * (1 + cos(2 pi lr_periods t)) / 2 + "
            "lr_beta), with t from 0 to 1",
            kNotNegative);
  flags.add("lr_alpha", lr_alpha, "see lr_periods", kNotNegative);
  flags.add("lr_beta", lr_beta, "see lr_periods", kNotNegative);
}

void ScheduleFlags::check(const FlagSet& flags) const {
  const bool decays = num_epochs_per_decay > 0 && learning_rate_decay_factor > 0 && init_learning_rate;
  const bool piecewise = !piecewise_learning_rate_schedule.empty(), named = lr_schedule != "auto";
  const bool lists = !lr_decay_lrs.empty(), listed = lists || piecewise, rate = init_learning_rate.has_value();
  refuse({
      {lists && (piecewise || init_learning_rate || num_epochs_per_decay > 0 || learning_rate_decay_factor > 0 ||
                 minimum_learning_rate > 0 || named),
       "--lr_decay_lrs and another flag of the learning rate: at most one may be given"},
      {!lr_decay_epochs.empty() && !lists, "--lr_decay_epochs needs --lr_decay_lrs"},
      {!lr_staircase && !decays, "--lr_staircase needs --num_epochs_per_decay and --learning_rate_decay_factor"},
      {piecewise && (init_learning_rate || num_epochs_per_decay > 0 || learning_rate_decay_factor > 0 ||
                     minimum_learning_rate > 0 || named),
       "--piecewise_learning_rate_schedule and another flag of the learning rate: at most one may be given"},
      {(num_epochs_per_decay > 0 || learning_rate_decay_factor > 0) && !decays,
       "--num_epochs_per_decay and --learning_rate_decay_factor need each other and --init_learning_rate"},
      {minimum_learning_rate > 0 && !decays,
       "--minimum_learning_rate needs --init_learning_rate, --num_epochs_per_decay and --learning_rate_decay_factor"},
      {num_learning_rate_warmup_epochs > 0 && !rate && !listed && !from_mlperf(),
       "--num_learning_rate_warmup_epochs needs --init_learning_rate, --piecewise_learning_rate_schedule or "
       "--lr_decay_lrs"},
      {warmup_learning_rate > 0 && num_learning_rate_warmup_epochs == 0 && !from_mlperf(),
       "--warmup_learning_rate needs --num_learning_rate_warmup_epochs"},
      {lr_reference_batch > 0 && !rate && !listed,
       "--lr_reference_batch needs --init_learning_rate, --piecewise_learning_rate_schedule or --lr_decay_lrs"},
      {named && !rate && !from_mlperf(), "--lr_schedule needs --init_learning_rate"},
      {named && decays, "--lr_schedule and the flags of the exponential decay: at most one may be given"},
  });
  check_names(flags);
}

// Refuses flags of schedules other than --lr_schedule.
void ScheduleFlags::check_names(const FlagSet& flags) const {
  const auto given = [&](std::initializer_list<const char*> names) {
    return std::ranges::any_of(names, [&](const char* name) { return flags.given(name); });
  };
  const bool cycle = lr_schedule == "poly_cycle", restarts = lr_schedule == "cosine_restarts";
  const bool polynomial = lr_schedule == "polynomial" || cycle || from_mlperf(),
             cosine = lr_schedule == "cosine" || restarts;
  refuse({
      {given({"end_learning_rate"}) && !polynomial && !cosine,
       "--end_learning_rate needs --lr_schedule=cosine, polynomial, poly_cycle, cosine_restarts or mlperf_lars"},
      {given({"lr_power"}) && !polynomial, "--lr_power needs --lr_schedule=polynomial, poly_cycle or mlperf_lars"},
      {given({"lr_cycle_epochs"}) && !cycle && !restarts,
       "--lr_cycle_epochs needs --lr_schedule=poly_cycle or cosine_restarts"},
      {(cycle || restarts) && lr_cycle_epochs == 0,
       "--lr_schedule=poly_cycle and cosine_restarts need --lr_cycle_epochs"},
      {given({"lr_t_mul", "lr_m_mul"}) && !restarts, "--lr_t_mul and --lr_m_mul need --lr_schedule=cosine_restarts"},
      {given({"lr_periods", "lr_alpha", "lr_beta"}) && lr_schedule != "linear_cosine",
       "--lr_periods, --lr_alpha and --lr_beta need --lr_schedule=linear_cosine"},
  });
}

Schedule ScheduleFlags::decayed(double steps_per_epoch, uint64_t total_steps) const {
  Schedule schedule{
      .base = init_learning_rate.value_or(0), .total_steps = total_steps, .steps_per_epoch = steps_per_epoch};
  if (num_epochs_per_decay > 0) {
    schedule.decay = Decay::exponential;
    schedule.factor = learning_rate_decay_factor;
    schedule.decay_epochs = num_epochs_per_decay;
    schedule.staircase = lr_staircase;
    schedule.floor = minimum_learning_rate;
    return schedule;
  }
  for (const Named& named : kNamed)
    if (lr_schedule == named.name) schedule.decay = named.decay;
  schedule.floor = end_learning_rate;
  schedule.power = lr_power;
  if (lr_cycle_epochs > 0) schedule.decay_epochs = lr_cycle_epochs;
  schedule.t_mul = lr_t_mul;
  schedule.m_mul = lr_m_mul;
  schedule.periods = lr_periods;
  schedule.alpha = lr_alpha;
  schedule.beta = lr_beta;
  return schedule;
}

std::optional<Schedule> ScheduleFlags::rule(double steps_per_epoch, uint64_t total_steps) const {
  if (!piecewise_learning_rate_schedule.empty())
    return Schedule::parse_piecewise(piecewise_learning_rate_schedule, steps_per_epoch);
  if (!lr_decay_lrs.empty()) return Schedule::parse_lists(lr_decay_epochs, lr_decay_lrs, steps_per_epoch);
  if (init_learning_rate || from_mlperf()) return decayed(steps_per_epoch, total_steps);
  return std::nullopt;
}

std::optional<Schedule> ScheduleFlags::schedule(double steps_per_epoch, uint64_t total_steps, int64_t batch) const {
  std::optional<Schedule> schedule = rule(steps_per_epoch, total_steps);
  if (!schedule) return std::nullopt;
  schedule->warmup_epochs = num_learning_rate_warmup_epochs;
  schedule->warmup_start = warmup_learning_rate;
  if (from_mlperf()) take_mlperf_rates(*schedule, batch, init_learning_rate, num_learning_rate_warmup_epochs);
  // A short run, such as a benchmark, may end within its warm-up.
  if (schedule->total_steps > 0 &&
      std::floor(schedule->warmup_epochs * steps_per_epoch) >= static_cast<double>(total_steps))
    schedule->decay = Decay::constant;
  if (lr_reference_batch > 0) {
    const double growth = static_cast<double>(batch) / static_cast<double>(lr_reference_batch);
    schedule->base *= growth;
    for (double& value : schedule->values) value *= growth;
  }
  return schedule;
}

}  // namespace dtrain::cli
