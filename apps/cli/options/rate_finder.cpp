// The suggestion is a starting point for further tuning.
#include "apps/cli/options/rate_finder.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "dtrain/io/atomic_file.h"

namespace dtrain::cli {
namespace {

constexpr Range<double> kRate{1e-30, 1e30};

std::string csv_of(const RateSweep& sweep) {
  std::string text = "learning_rate,loss,smoothed_loss\n";
  for (const auto& [rate, loss, smoothed] : sweep.points) text += fmt::format("{},{},{}\n", rate, loss, smoothed);
  return text;
}

std::string json_of(const RateSweep& sweep) {
  nlohmann::ordered_json json = {{"suggestion", nullptr}, {"diverged", sweep.diverged}};
  if (sweep.suggestion) json["suggestion"] = sweep.points[*sweep.suggestion].rate;
  json["points"] = nlohmann::ordered_json::array();
  for (const auto& [rate, loss, smoothed] : sweep.points)
    json["points"].push_back({{"learning_rate", rate}, {"loss", loss}, {"smoothed_loss", smoothed}});
  return json.dump(1) + "\n";
}

}  // namespace

void RateFinderFlags::declare(FlagSet& flags) {
  flags.group("Learning-rate range test");
  flags.add("find_learning_rate", find_learning_rate,
            "learning-rate range test instead of training: increase the learning rate in each step until the smoothed "
            "loss is four times its minimum, and suggest the rate of the steepest descent; nothing is read from "
            "train_dir or saved");
  flags.add("find_learning_rate_from", find_learning_rate_from, "learning rate of the first step", kRate);
  flags.add("find_learning_rate_to", find_learning_rate_to, "learning rate of the last step", kRate);
  flags.add("find_learning_rate_steps", find_learning_rate_steps, "number of steps", {2, 10'000});
  flags.add("find_learning_rate_file", find_learning_rate_file,
            "file for all learning rates and losses: JSON if its name ends in .json, else CSV");
}

void RateFinderFlags::check(const FlagSet& flags) const {
  bool given = false;
  for (const char* flag : {"from", "to", "steps", "file"})
    given |= flags.given(fmt::format("find_learning_rate_{}", flag));
  refuse({
      {given && !find_learning_rate, "--find_learning_rate_* need --find_learning_rate"},
      {find_learning_rate_from >= find_learning_rate_to,
       "--find_learning_rate_from: expected less than --find_learning_rate_to"},
  });
}

RateSweepOptions RateFinderFlags::options() const {
  return {.first = find_learning_rate_from,
          .last = find_learning_rate_to,
          .steps = static_cast<uint64_t>(find_learning_rate_steps)};
}

void RateFinderFlags::report(const RateSweep& sweep, Log& log, bool writes) const {
  log.line("Learning rate\tLoss\tSmoothed loss");
  for (const auto& [rate, loss, smoothed] : sweep.points)
    log.line(fmt::format("{:.4e}\t{:.4f}\t{:.4f}", rate, loss, smoothed));
  if (sweep.diverged) log.line("The loss has grown too far: the search ended before its last step");
  log.line(sweep.suggestion ? fmt::format("Suggested learning rate: {:.3g}, where the smoothed loss fell fastest",
                                          sweep.points[*sweep.suggestion].rate)
                            : "No learning rate is suggested: the loss did not decrease, or there were too few steps");
  if (!writes || find_learning_rate_file.empty()) return;
  AtomicFile file(find_learning_rate_file);
  file.write(find_learning_rate_file.ends_with(".json") ? json_of(sweep) : csv_of(sweep));
  file.commit();
}

}  // namespace dtrain::cli
