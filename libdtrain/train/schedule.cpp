#include "libdtrain/train/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <numbers>

#include "libdtrain/core/error.h"

namespace dtrain {
namespace {

// tf_cnn_benchmarks truncates too. Beyond the steps of any run all are the same.
uint64_t whole_steps(double epochs, double steps_per_epoch) {
  constexpr double kNever = 1e18;
  return static_cast<uint64_t>(std::min(epochs * steps_per_epoch, kNever));
}

double parse_number(const std::string& part, const char* meaning, size_t position, const std::string& text) {
  double number = 0;
  const char* end = part.data() + part.size();
  const auto [stop, error] = std::from_chars(part.data(), end, number);
  constexpr double kMost = 1e30;  // a rate becomes a float
  DT_CHECK(error == std::errc() && stop == end && number >= 0 && number <= kMost, "piecewise learning rates '", text,
           "': part ", position, ", '", part, "', is not a ", meaning, "; expected LR0;E1;LR1;...;En;LRn");
  return number;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == ';')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

bool divides_by_ten(double before, double after) { return std::abs(after - 0.1 * before) <= 1e-12 * before; }

// An epoch of one step is none to a reader.
const char* unit_of(const Schedule& schedule) { return schedule.steps_per_epoch == 1 ? "step" : "epoch"; }

std::string describe_piecewise(const Schedule& schedule) {
  const char* unit = unit_of(schedule);
  bool tenths = true;
  std::string epochs, rates;
  for (size_t i = 0; i < schedule.values.size(); ++i) {
    tenths &= divides_by_ten(i ? schedule.values[i - 1] : schedule.base, schedule.values[i]);
    epochs += fmt::format("{}{}", i ? ", " : "", schedule.boundaries[i]);
    rates += fmt::format(", {:g} from {} {}", schedule.values[i], unit, schedule.boundaries[i]);
  }
  return tenths ? fmt::format(", x0.1 at {}{} {}", unit, schedule.values.size() > 1 ? "s" : "", epochs) : rates;
}

}  // namespace

double Schedule::at(uint64_t step) const {
  const uint64_t warmup = whole_steps(warmup_epochs, steps_per_epoch);
  if (step < warmup)
    return warmup_start + (base - warmup_start) * static_cast<double>(step) / static_cast<double>(warmup);
  const double after = static_cast<double>(step - warmup);
  const double t = total_steps > warmup ? std::min(1.0, after / static_cast<double>(total_steps - warmup)) : 1.0;
  switch (decay) {
    case Decay::constant:
      return base;
    case Decay::piecewise: {
      double rate = base;
      for (size_t i = 0; i < values.size(); ++i)
        if (step >= whole_steps(boundaries[i], steps_per_epoch)) rate = values[i];
      return rate;
    }
    case Decay::exponential: {
      const uint64_t interval = std::max<uint64_t>(1, whole_steps(decay_epochs, steps_per_epoch));
      return std::max(floor, base * std::pow(factor, static_cast<double>(step / interval)));
    }
    case Decay::polynomial:
      return floor + (base - floor) * std::pow(1 - t, power);
    case Decay::cosine:
      return floor + (base - floor) * (1 + std::cos(std::numbers::pi * t)) / 2;
  }
  return base;
}

std::string Schedule::describe() const {
  std::string text = fmt::format("{:g}", base);
  if (warmup_epochs > 0) text += fmt::format(", linear warm-up over {} {}s", warmup_epochs, unit_of(*this));
  if (warmup_epochs > 0 && warmup_start > 0) text += fmt::format(" from {:g}", warmup_start);
  switch (decay) {
    case Decay::constant:
      break;
    case Decay::piecewise:
      text += describe_piecewise(*this);
      break;
    case Decay::exponential:
      text += fmt::format(", x{:g} every {:g} {}s", factor, decay_epochs, unit_of(*this));
      if (floor > 0) text += fmt::format(", not below {:g}", floor);
      break;
    case Decay::polynomial:
      text += fmt::format(", polynomial of power {:g} to {:g} at step {}", power, floor, total_steps);
      break;
    case Decay::cosine:
      text += fmt::format(", cosine to {:g} at step {}", floor, total_steps);
      break;
  }
  return text;
}

void Schedule::validate() const {
  DT_CHECK(base >= 0 && std::isfinite(base), "learning rate ", base, ": expected a finite number, 0 or more");
  DT_CHECK(steps_per_epoch > 0, "learning-rate schedule: ", steps_per_epoch, " steps per epoch");
  DT_CHECK(warmup_epochs >= 0, "learning-rate warm-up of ", warmup_epochs, " epochs");
  DT_CHECK(warmup_start >= 0 && std::isfinite(warmup_start), "learning-rate warm-up from ", warmup_start,
           ": expected a finite number, 0 or more");
  DT_CHECK(decay != Decay::piecewise || (values.size() == boundaries.size() && !values.empty()),
           "piecewise learning rates: ", values.size(), " rates for ", boundaries.size(), " boundaries");
  DT_CHECK(std::adjacent_find(boundaries.begin(), boundaries.end(), std::greater_equal<>()) == boundaries.end(),
           "piecewise learning rates: the epochs must increase");
  DT_CHECK(decay != Decay::exponential || (factor > 0 && decay_epochs > 0), "exponential learning rate: x", factor,
           " every ", decay_epochs, " epochs; both must be positive");
  const bool runs_out = decay == Decay::polynomial || decay == Decay::cosine;
  DT_CHECK(!runs_out || total_steps > whole_steps(warmup_epochs, steps_per_epoch), "learning rate that decays over ",
           total_steps, " steps, of which the warm-up alone takes ", whole_steps(warmup_epochs, steps_per_epoch));
}

Schedule Schedule::piecewise(double base, std::vector<double> boundaries, std::vector<double> values,
                             double steps_per_epoch) {
  Schedule schedule;
  schedule.decay = Decay::piecewise;
  schedule.base = base;
  schedule.boundaries = std::move(boundaries);
  schedule.values = std::move(values);
  schedule.steps_per_epoch = steps_per_epoch;
  schedule.validate();
  return schedule;
}

Schedule Schedule::parse_piecewise(const std::string& text, double steps_per_epoch) {
  const std::vector<std::string> parts = split(text);
  DT_CHECK(parts.size() % 2 == 1 && parts.size() >= 3, "piecewise learning rates '", text, "': ", parts.size(),
           " parts; expected LR0;E1;LR1;...;En;LRn, an odd number of at least 3");
  const double base = parse_number(parts[0], "learning rate", 1, text);
  std::vector<double> boundaries, values;
  for (size_t i = 1; i < parts.size(); i += 2) {
    boundaries.push_back(parse_number(parts[i], "number of epochs", i + 1, text));
    values.push_back(parse_number(parts[i + 1], "learning rate", i + 2, text));
    DT_CHECK(i == 1 || boundaries[boundaries.size() - 2] < boundaries.back(), "piecewise learning rates '", text,
             "': part ", i + 1, ", epoch ", parts[i], ", does not come after epoch ", parts[i - 2]);
  }
  return piecewise(base, std::move(boundaries), std::move(values), steps_per_epoch);
}

}  // namespace dtrain
