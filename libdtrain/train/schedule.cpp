#include "dtrain/train/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <numbers>

#include "dtrain/core/error.h"

namespace dtrain {
namespace {

// Truncates like tf_cnn_benchmarks; saturates beyond the steps of any run.
uint64_t whole_steps(double epochs, double steps_per_epoch) {
  constexpr double kNever = 1e18;
  return static_cast<uint64_t>(std::min(epochs * steps_per_epoch, kNever));
}

// `what`: e.g. "piecewise learning rates"; `expected`: their format.
struct Grammar {
  const char *what, *expected;
};
constexpr Grammar kPiecewise{"piecewise learning rates", "LR0;E1;LR1;...;En;LRn"};
constexpr Grammar kRates{"list of learning rates", "LR0,LR1,...,LRn"}, kEpochs{"list of epochs", "E1,E2,...,En"};

double parse_number(const Grammar& grammar, const std::string& part, const char* meaning, size_t position,
                    const std::string& text) {
  double number = 0;
  const char* end = part.data() + part.size();
  const auto [stop, error] = std::from_chars(part.data(), end, number);
  constexpr double kMost = 1e30;  // fits in a float
  DT_CHECK(error == std::errc() && stop == end && number >= 0 && number <= kMost, grammar.what, " '", text, "': part ",
           position, ", '", part, "', is not a ", meaning, "; expected ", grammar.expected);
  return number;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::vector<double> parse_list(const Grammar& grammar, const std::string& text, const char* meaning) {
  std::vector<double> numbers;
  for (const std::string& part : split(text, ','))
    numbers.push_back(parse_number(grammar, part, meaning, numbers.size() + 1, text));
  return numbers;
}

bool divides_by_ten(double before, double after) { return std::abs(after - 0.1 * before) <= 1e-12 * before; }

// With one step per epoch, times are shown in steps.
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

// Half cosine from 1 at t = 0 to 0 at t = 1.
double half_wave(double t) { return (1 + std::cos(std::numbers::pi * t)) / 2; }

// Consecutive half cosines: period grows by t_mul, height by m_mul.
double restarted_wave(double step, double period, double t_mul, double m_mul) {
  if (t_mul == 1) {
    const double done = std::floor(step / period);
    return std::pow(m_mul, done) * half_wave((step - done * period) / period);
  }
  double height = 1;
  for (; step >= period; period *= t_mul) {
    step -= period;
    height *= m_mul;
  }
  return height * half_wave(step / period);
}

}  // namespace

double Schedule::at(uint64_t step) const {
  const uint64_t warmup = whole_steps(warmup_epochs, steps_per_epoch);
  if (step < warmup)
    return warmup_start + (base - warmup_start) * static_cast<double>(step) / static_cast<double>(warmup);
  const double after = static_cast<double>(step - warmup);
  const double t = total_steps > warmup ? std::min(1.0, after / static_cast<double>(total_steps - warmup)) : 1.0;
  const auto interval = static_cast<double>(std::max<uint64_t>(1, whole_steps(decay_epochs, steps_per_epoch)));
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
      const double intervals = static_cast<double>(step) / interval;
      return std::max(floor, base * std::pow(factor, staircase ? std::floor(intervals) : intervals));
    }
    case Decay::polynomial:
      return floor + (base - floor) * std::pow(1 - t, power);
    case Decay::polynomial_cycle:
      return floor +
             (base - floor) * std::pow(1 - after / (interval * std::max(1.0, std::ceil(after / interval))), power);
    case Decay::cosine:
      return floor + (base - floor) * half_wave(t);
    case Decay::cosine_restarts:
      return floor + (base - floor) * restarted_wave(after, interval, t_mul, m_mul);
    case Decay::linear_cosine:
      return base * ((alpha + 1 - t) * half_wave(2 * periods * t) + beta);
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
      text +=
          fmt::format(", x{:g} {} {:g} {}s", factor, staircase ? "every" : "evenly over", decay_epochs, unit_of(*this));
      if (floor > 0) text += fmt::format(", not below {:g}", floor);
      break;
    case Decay::polynomial:
      text += fmt::format(", polynomial of power {:g} to {:g} at step {}", power, floor, total_steps);
      break;
    case Decay::cosine:
      text += fmt::format(", cosine to {:g} at step {}", floor, total_steps);
      break;
    case Decay::polynomial_cycle:
      text += fmt::format(", polynomial of power {:g} to {:g} in cycles of {} {}s", power, floor, decay_epochs,
                          unit_of(*this));
      break;
    case Decay::cosine_restarts:
      text += fmt::format(", cosine to {:g} in {} {}s, then again, x{:g} as long and from x{:g} the rate", floor,
                          decay_epochs, unit_of(*this), t_mul, m_mul);
      break;
    case Decay::linear_cosine:
      text += fmt::format(", linear cosine of {:g} periods to x{:g} at step {}", periods, beta, total_steps);
      if (alpha > 0) text += fmt::format(", alpha {:g}", alpha);
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
  DT_CHECK((decay != Decay::polynomial_cycle && decay != Decay::cosine_restarts) || decay_epochs > 0,
           "learning rate in cycles of ", decay_epochs, " epochs; expected more than 0");
  DT_CHECK(t_mul >= 1 && std::isfinite(t_mul), "learning rate with restarts: periods grow by ", t_mul,
           "; expected 1 or more");
  for (const double number : {floor, power, m_mul, periods, alpha, beta})
    DT_CHECK(number >= 0 && std::isfinite(number), "learning-rate schedule: a parameter is ", number,
             "; expected a finite number, 0 or more");
  const bool runs_out = decay == Decay::polynomial || decay == Decay::cosine || decay == Decay::linear_cosine;
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

Schedule Schedule::parse_lists(const std::string& epochs, const std::string& rates, double steps_per_epoch) {
  std::vector<double> values = parse_list(kRates, rates, "learning rate"), boundaries;
  if (epochs.empty())
    for (size_t i = 1; i < values.size(); ++i) boundaries.push_back(static_cast<double>(i));
  else
    boundaries = parse_list(kEpochs, epochs, "number of epochs");
  DT_CHECK(values.size() == boundaries.size() + 1, "learning rates '", rates, "': ", values.size(), " rates for ",
           boundaries.size(), " epochs '", epochs, "'; expected one rate more than epochs");
  const double base = values.front();
  values.erase(values.begin());
  if (values.empty()) return {.base = base, .steps_per_epoch = steps_per_epoch};
  return piecewise(base, std::move(boundaries), std::move(values), steps_per_epoch);
}

Schedule Schedule::parse_piecewise(const std::string& text, double steps_per_epoch) {
  const std::vector<std::string> parts = split(text, ';');
  DT_CHECK(parts.size() % 2 == 1 && parts.size() >= 3, "piecewise learning rates '", text, "': ", parts.size(),
           " parts; expected LR0;E1;LR1;...;En;LRn, an odd number of at least 3");
  const double base = parse_number(kPiecewise, parts[0], "learning rate", 1, text);
  std::vector<double> boundaries, values;
  for (size_t i = 1; i < parts.size(); i += 2) {
    boundaries.push_back(parse_number(kPiecewise, parts[i], "number of epochs", i + 1, text));
    values.push_back(parse_number(kPiecewise, parts[i + 1], "learning rate", i + 2, text));
    DT_CHECK(i == 1 || boundaries[boundaries.size() - 2] < boundaries.back(), "piecewise learning rates '", text,
             "': part ", i + 1, ", epoch ", parts[i], ", does not come after epoch ", parts[i - 2]);
  }
  return piecewise(base, std::move(boundaries), std::move(values), steps_per_epoch);
}

}  // namespace dtrain
